/** What the guards of paths and of git take for one command, by the time of the processor. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as NodeFiles from "../../src/cli/NodeFiles.js"
import * as GitGuard from "../../src/permission/GitGuard.js"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Sanitizer from "../../src/permission/Sanitizer.js"
import { commandField } from "../kit/Commands.js"
import * as Computation from "../kit/Computation.js"
import * as Kit from "../kit/gate.js"
import * as LongCommands from "../kit/LongCommands.js"
import * as Runs from "../kit/Runs.js"

type Measure = (command: string) => Effect.Effect<number>

/** Milliseconds in each guard, in a workspace with some files. */
const inWorkspace = (use: (guards: { readonly git: Measure; readonly paths: Measure }) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    yield* NodeFiles.directLinks
    const workspace = yield* Effect.flatMap(fileSystem.makeTempDirectoryScoped(), fileSystem.realPath)
    yield* fileSystem.makeDirectory(`${workspace}/src/.git`, { recursive: true })
    for (let i = 0; i < 500; i++) yield* fileSystem.writeFileString(`${workspace}/f${i}x`, "")
    const entry = (yield* Kit.registry).get("shell")
    assert(entry !== undefined)
    const git = GitGuard.make({ fileSystem, path, workspace })
    const timed =
      (work: (call: PermissionRule.Subject) => Effect.Effect<unknown, unknown>): Measure =>
      (command) =>
        Effect.suspend(() => {
          const subject = PermissionRule.subject({ tool: "shell", params: { command }, commandField })
          // Read by all guards together.
          void subject.readings
          const computed = Computation.begin()
          return Effect.map(Effect.orDie(work(subject)), computed)
        })
    yield* use({
      git: timed((subject) => git({ tool: "shell", params: subject.params, subject, entry })),
      paths: timed((subject) =>
        Effect.provide(
          Sanitizer.violations(subject, {
            workspace,
            protectedPaths: [`${workspace}/.assent`],
            pathFields: [],
            options: Sanitizer.defaults
          }),
          NodeContext.layer
        )
      )
    })
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer), Effect.orDie)

/**
 * As in `Growth.test.ts`: what grows with the square takes four times as long for twice the text, at more than one step of
 * three.
 * The longest command is twelve times as long as the largest one here.
 */
const growth = (measure: Measure, shape: LongCommands.Shape) =>
  Effect.gen(function* () {
    const texts = [1_000, 2_000, 4_000, 8_000].map((length) => LongCommands.filled(shape, length))
    let least: ReadonlyArray<number> = texts.map(() => Number.POSITIVE_INFINITY)
    for (let round = 0; round < 11; round++) {
      const times = yield* Effect.forEach(texts, measure)
      least = least.map((time, at) => Math.min(time, times[at] ?? time))
      const steps = least.slice(1).map((time, step) => time / (least[step] ?? time))
      const [few = 0, many = 0] = [least[0], least.at(-1)]
      if (many < 5 || many < 24 * few || (steps.toSorted((one, other) => one - other)[1] ?? 0) < 2.5) return undefined
    }
    return `${shape.join("…")}: ${least.map((time) => `${time.toFixed(1)} ms`).join(", ")}`
  })

describe("the time that guards take", () => {
  it.effect(
    "grows as the text does, whatever it is",
    () =>
      inWorkspace(({ git, paths }) =>
        Effect.gen(function* () {
          const slow: Array<string> = []
          for (const shape of Runs.some(LongCommands.shapes)) {
            for (const measure of [git, paths]) {
              const found = yield* growth(measure, shape)
              if (found !== undefined) slow.push(found)
            }
          }
          assert.deepStrictEqual(slow, [])
        })
      ),
    600_000
  )

  it.effect("is microseconds for a word that names something, be it there or not", () =>
    inWorkspace(({ git, paths }) =>
      Effect.gen(function* () {
        for (const word of [
          (i: number) => `f${i}x`,
          (i: number) => `w${i}`,
          (i: number) => `src/a${i}.ts`,
          (i: number) => `'a b${i}'`,
          (i: number) => `d${i}/e`
        ]) {
          const command = `git add ${Array.from({ length: 3_000 }, (_, i) => word(i)).join(" ")}`
          for (const measure of [git, paths]) {
            let least = Number.POSITIVE_INFINITY
            // 20 µs a word; a slower machine may take twice as long.
            for (let round = 0; round < 20 && least >= 120; round++) least = Math.min(least, yield* measure(command))
            assert.isBelow(least, 120, word(0))
          }
        }
      })
    )
  )
})
