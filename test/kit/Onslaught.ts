/**
 * Runs confined commands and kills them at random moments: by cancelling the call, by its timeout, by SIGKILL to their
 * group, to one of their processes, and to the search for stray processes. Then checks that nothing is left.
 */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Workspace from "../../src/builtin/Workspace.js"
import * as Wait from "./Wait.js"

export interface Options {
  /** An empty directory: for the workspace, the state and the temp directory. */
  readonly place: string
  readonly calls: number
  /** Numbers from 0 up to 1. */
  readonly random: () => number
  readonly tell?: (line: string) => void
}

export interface Verdict {
  /** How many ended how. */
  readonly ends: Readonly<Record<string, number>>
  /** What was left, or did not end. */
  readonly left: ReadonlyArray<string>
}

/** What is drawn for each call. */
const ways = ["by itself", "cancelled", "timed out", "group killed", "process killed", "search killed"] as const

/** `N` is another number each time. */
const lines = [
  "true",
  "echo out; exit 3",
  "sleep 30",
  "setsid sleep 30 & wait",
  "(setsid sh -c 'trap \"\" TERM HUP; sleep 30' &) ; sleep 30",
  "trap '' TERM; while :; do sleep 0.05; done",
  "yes | head -c 3000000; sleep 30",
  "mkdir -p dN/.git/hooks eN; sleep 30",
  "mkdir -p dN/.git; chmod 111 dN; sleep 30",
  "mkdir -p dN/.assent; touch .git/commondir; sleep 30",
  "for i in 1 2 3 4 5 6 7 8; do (sleep 30 &) ; done; sleep 30",
  "head -c 5000000 /dev/zero > /tmp/full; touch /dev/shm/x; sleep 30"
]

export const run = ({ calls, place, random, tell = () => undefined }: Options): Promise<Verdict> =>
  Effect.gen(function* () {
    const root = join(place, "workspace")
    const temp = join(place, "temp")
    const state = join(place, "state")
    for (const directory of [root, temp, state]) mkdirSync(directory, { recursive: true })
    execFileSync("git", ["init", "-q", root])
    const before = { temp: process.env["TMPDIR"], root: readdirSync(root).toSorted(), mounts: mounts(place) }
    process.env["TMPDIR"] = temp
    const mark = `ONSLAUGHT=${place}`
    const scope = yield* Scope.make()
    const layer = Workspace.layer({
      root,
      environment: { ONSLAUGHT: place },
      sandbox: { mode: "require", directory: state }
    })
    const context = yield* Scope.extend(Layer.build(layer), scope)
    const kit = yield* Effect.provide(Workspace.toolkit, context)
    const ends: Record<string, number> = {}
    const left: Array<string> = []
    const pick = <A>(all: ReadonlyArray<A>): A | undefined => all[Math.floor(random() * all.length)]

    const call = (number: number) =>
      Effect.gen(function* () {
        const way = pick(ways) ?? "by itself"
        const line = (way === "by itself" ? pick(lines.slice(0, 2)) : pick(lines)) ?? "true"
        const moment = 300 * random() ** 2
        const command = line.replaceAll("N", `${number}`)
        const timeout = way === "timed out" ? 0.001 + moment / 1_000 : way === "by itself" ? 20 : 1
        // One that does not end must not keep the verdict from being told.
        const running = yield* Effect.forkDaemon(Effect.exit(kit.handle("run_command", { command, timeout })))
        if (way !== "by itself" && way !== "timed out") {
          yield* Effect.sleep(moment)
          if (way === "cancelled") yield* Fiber.interruptFork(running)
          if (way === "group killed") kill(pick(ours(mark)), true)
          if (way === "process killed") kill(pick(marked(mark)), false)
          if (way === "search killed") kill(pick(searching(place)), true)
        }
        const ended = yield* Effect.timeoutOption(Fiber.await(running), "40 seconds")
        if (ended._tag === "None") left.push(`call ${number} does not end: ${way}, ${command}`)
        ends[way] = (ends[way] ?? 0) + 1
      }).pipe(Effect.provide(context))

    /** What is still there; asked again for a while, because the kernel takes its time to end what was killed. */
    const remains = (look: () => ReadonlyArray<string>) =>
      Effect.catchAll(
        Wait.until(Effect.sync(look), (found) => found.length === 0),
        () => Effect.sync(() => left.push(...look()))
      )

    for (let done = 0; done < calls && left.length === 0;) {
      const now = Math.min(atOnce * 5, calls - done)
      yield* Effect.forEach(
        Array.from({ length: now }, (_, index) => done + index),
        call,
        { concurrency: atOnce, discard: true }
      )
      done += now
      yield* remains(() => marked(mark).map((pid) => `process ${pid}: ${text(`/proc/${pid}/cmdline`)}`))
      if (done % 100 === 0) tell(`${done} calls`)
    }
    // One that ends by itself sees whatever the others left, and puts it away.
    yield* Effect.provide(Effect.exit(kit.handle("run_command", { command: "true" })), context)
    yield* Scope.close(scope, Exit.void)
    yield* remains(() =>
      [...marked(mark), ...searching(place)].map((pid) => `process ${pid}: ${text(`/proc/${pid}/cmdline`)}`)
    )
    left.push(...readdirSync(temp).map((name) => `in the temp directory: ${name}`))
    left.push(
      ...readdirSync(state)
        .filter((name) => name.startsWith("filter-"))
        .map((name) => `in the state directory: ${name}`)
    )
    // Commands made some that nobody may list; they keep their modes.
    execFileSync("chmod", ["-R", "u+rwx", root])
    const nested = execFileSync("find", [root, "-mindepth", "2", "(", "-name", ".git", "-o", "-name", ".assent", ")"])
    left.push(
      ...nested
        .toString()
        .split("\n")
        .filter((name) => name !== "")
    )
    const extra = readdirSync(root).filter((name) => !before.root.includes(name) && !/^[de]\d+$/.test(name))
    left.push(...extra.map((name) => `in the workspace: ${name}`))
    if (mounts(place) !== before.mounts) left.push("a mount")
    if (before.temp === undefined) delete process.env["TMPDIR"]
    else process.env["TMPDIR"] = before.temp
    return { ends, left }
  }).pipe(Effect.provide(NodeContext.layer), Effect.runPromise)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const atOnce = 4

const text = (file: string): string => {
  try {
    return readFileSync(file, "latin1")
  } catch {
    return ""
  }
}

const processes = () => readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)

/** Dead ones that nobody has collected yet do not count. */
const isAlive = (pid: string): boolean => {
  const stat = text(`/proc/${pid}/stat`)
  return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2))
}

/** All that belongs to a call: by environment, or by what a sandbox is told to set. */
const marked = (mark: string): ReadonlyArray<string> =>
  processes().filter((pid) => {
    const words = text(`/proc/${pid}/cmdline`)
    const isOurs = text(`/proc/${pid}/environ`).includes(mark) || words.includes(mark.replace("=", "\0"))
    return isOurs && isAlive(pid)
  })

/** Those that we started. */
const ours = (mark: string): ReadonlyArray<string> =>
  marked(mark).filter((pid) => {
    const stat = text(`/proc/${pid}/stat`)
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] === `${process.pid}`
  })

/** The shell that waits to look, and its `find`. */
const searching = (place: string): ReadonlyArray<string> =>
  processes().filter((pid) => {
    const words = text(`/proc/${pid}/cmdline`)
    return words.includes("-iname") && words.includes(place) && isAlive(pid)
  })

const kill = (pid: string | undefined, isGroup: boolean): void => {
  if (pid === undefined) return
  try {
    process.kill(isGroup ? -Number(pid) : Number(pid), "SIGKILL")
  } catch {
    // It is gone, or leads no group.
  }
}

const mounts = (place: string): number =>
  text("/proc/self/mountinfo")
    .split("\n")
    .filter((line) => line.includes(place)).length
