/**
 * Commands at random, run by real shells: whatever reaches a program as an argument that leads outside of the workspace was
 * refused before.
 */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FileSystem from "@effect/platform/FileSystem"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as PermissionRule from "../../src/permission/PermissionRule.js"
import * as Sanitizer from "../../src/permission/Sanitizer.js"
import { commandField } from "../kit/Commands.js"
import * as Runs from "../kit/Runs.js"

const segment = fc.constantFrom(
  ..."src deep a.ts out-link back .. . * s* s?c o* .* .? d[e]ep [a-z]ut-link {src,out-link} {.,..} {a,{b,..}}".split(
    " "
  ),
  ..."$A ${A} $B ${B} $UNSET ${UNSET} ${C:-..} ${C:-src} ${A:+..} $PWD $HOME ~ x.$A '..' \"..\" .'.' \\.. out''-link".split(
    " "
  ),
  ..."[^x]ut-link [[:alpha:]]ut-link [!x]rc [[:lower:]]rc []s]rc [^]x]rc out-linkx $'..' $'out-link' $\"..\"".split(
    " "
  ),
  ..."${A%x} ${A%%x*} ${A#src} ${A##*/} ${A%/*} ${B%?} ${PWD%/*} ${HOME%/*} ${A:0:2} ${A/src/..} ${A:-${B}} ${#A}".split(
    " "
  )
)
const first = fc.oneof(segment, fc.constantFrom("/etc", "/", "/et*", "/e?c", "$UNSET/etc", "/$A", "/${UNSET}etc"))
const file = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(first, fc.array(segment, { maxLength: 2 })).map(([head, rest]) => [head, ...rest].join("/"))
  },
  { weight: 1, arbitrary: segment }
)
const word = fc.oneof(
  { weight: 4, arbitrary: file },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom("-x", "-xz", "-xzf", "--file=", "-C", "of=", "@", "--a=b,", "-I"), file)
      .map(([head, tail]) => head + tail)
  }
)
const statement = fc.oneof(
  { weight: 5, arbitrary: fc.array(word, { minLength: 1, maxLength: 2 }).map((words) => `rec ${words.join(" ")}`) },
  { weight: 2, arbitrary: file.map((target) => `cd ${target}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("cd", "cd -", "cd --", "cd -P", "cd ''", "HOME=src", "CDPATH=..", "unset A", "PWD=..")
  },
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom("A", "B", "C"), file).map(([name, value]) => `${name}=${value}`) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom("A", "HOME", "B"), file, word)
      .map(([name, value, arg]) => `${name}=${value} rec ${arg}`)
  },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom("A", "B"), file).map(([name, value]) => `export ${name}=${value}`) },
  { weight: 1, arbitrary: fc.tuple(file, word).map(([at, arg]) => `for A in ${at}; do rec ${arg}; done`) },
  { weight: 1, arbitrary: word.map((arg) => `sh -c "rec ${arg.replace(/["\\]/g, "")}"`) },
  { weight: 1, arbitrary: word.map((arg) => `echo $(rec ${arg})`) }
)
const line = fc.array(statement, { minLength: 1, maxLength: 3 }).map((all) => all.join("; "))

/** Where a path leads from a directory, as far as it is there. */
const real = (from: string, text: string): string => {
  let at = text.startsWith("/") ? "/" : from
  for (const part of text.split("/")) {
    if (part === "" || part === ".") continue
    if (part === "..") at = path.dirname(at)
    else {
      const next = path.join(at, part)
      at = fs.existsSync(next) ? fs.realpathSync(next) : next
    }
  }
  return at
}

/** What a program may take for a path in its argument. */
const meant = (argument: string): ReadonlyArray<string> => {
  const letters = /^-([A-Za-z0-9]+)/.exec(argument)?.[1]?.length ?? 0
  return [
    ...(argument.startsWith("-") ? [] : [argument]),
    ...Array.from({ length: letters }, (_, index) => argument.slice(index + 2)),
    ...argument.split(/[=@,]/).slice(1)
  ].filter((text) => text !== "")
}

const lines = Runs.of(4_000)
const seed = Number(process.env["SEED"] ?? 20260)

describe("whatever a shell makes of a command", () => {
  it.live.skipIf(process.platform === "win32")(
    "no program gets a path that leads outside, unless the command was refused",
    () =>
      Effect.gen(function* () {
        const system = yield* FileSystem.FileSystem
        const root = yield* Effect.flatMap(system.makeTempDirectoryScoped(), system.realPath)
        const workspace = `${root}/ws`
        fs.mkdirSync(`${workspace}/src/deep`, { recursive: true })
        fs.mkdirSync(`${root}/out/src`, { recursive: true })
        fs.mkdirSync(`${root}/home/deep`, { recursive: true })
        fs.mkdirSync(`${root}/lines`)
        fs.mkdirSync(`${root}/bin`)
        for (const name of ["src/a.ts", "a.ts"]) fs.writeFileSync(`${workspace}/${name}`, "")
        fs.symlinkSync(`${root}/out`, `${workspace}/out-link`)
        fs.symlinkSync(`${root}/out`, `${workspace}/src/out-link`)
        fs.symlinkSync(`${workspace}`, `${workspace}/src/back`)
        fs.writeFileSync(
          `${root}/bin/rec`,
          '#!/bin/sh\n{ printf "%s\\0" "$LINE" "$(pwd -P)" "$#" "$@"; } >> "$RECORD"\n',
          { mode: 0o755 }
        )
        const texts = fc.sample(line, { numRuns: lines, seed })
        let passed = 0
        for (const [index, text] of texts.entries()) {
          const subject = PermissionRule.subject({ tool: "run", params: { command: text }, commandField })
          const found = yield* Sanitizer.violations(subject, {
            workspace,
            protectedPaths: [],
            pathFields: ["cwd"],
            home: `${root}/home`,
            options: Sanitizer.defaults
          })
          if (found.length > 0) continue
          passed++
          fs.writeFileSync(`${root}/lines/${index}`, text)
        }
        // Enough of them have to run for the test to mean something.
        assert.isAbove(passed, lines / 20)
        const problems: Array<string> = []
        for (const shell of ["dash", "bash"]) {
          const record = `${root}/record-${shell}`
          fs.writeFileSync(record, "")
          const env = { PATH: `${root}/bin:${process.env.PATH}`, HOME: `${root}/home`, RECORD: record }
          const each = `for f in ../lines/*; do LINE=$f ${shell} "$f" >/dev/null 2>&1 </dev/null; done`
          if (spawnSync(shell, ["-c", "true"]).error !== undefined) continue
          spawnSync("/bin/sh", ["-c", each], { cwd: workspace, env })
          const parts = fs.readFileSync(record, "utf8").split("\0")
          for (let at = 0; at + 2 < parts.length;) {
            const [name = "", cwd = "", count = ""] = parts.slice(at, at + 3)
            const given = parts.slice(at + 3, at + 3 + Number(count))
            at += 3 + Number(count)
            const places = [cwd, ...given.flatMap(meant).map((text) => real(cwd, text))]
            const outside = places.find((place) => place !== workspace && !place.startsWith(`${workspace}/`))
            // An absolute path that nothing is at, made by a variable that is not set, is a text to the guard.
            if (outside === undefined || !fs.existsSync(`/${outside.split("/")[1]}`)) continue
            problems.push(
              `${shell}: ${texts[Number(path.basename(name))]}\n   in ${cwd}: ${given.join(" ")} -> ${outside}`
            )
          }
        }
        assert.deepStrictEqual(problems, [])
      }).pipe(Effect.scoped, Effect.provide(NodeContext.layer)),
    120_000
  )
})
