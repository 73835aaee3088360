/** Commands in the background, of whole programs: with a sandbox and without one. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import * as Confined from "../kit/Confined.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

/** A time to sleep that no other process sleeps. */
let sleeps = 0
const aSleep = (): string => `${700_000_000 + process.pid * 100 + ++sleeps}`

/** The processes that sleep so long. */
const sleeping = (time: string) => Program.processesWith(`\0${time}\0`)

/** The group of a process. */
const groupOf = (pid: number): number | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2])
  } catch {
    return undefined
  }
}

/** Whether one of these groups is watched. */
const isWatched = (groups: Iterable<number | undefined>): boolean =>
  Array.from(groups).some((group) => Program.processesWith(`\0watcher\0${group}\0`).length > 0)

const background = (command: string, more: object = {}) => ({
  name: "run_command",
  params: { command, background: true, ...more }
})

const serve = `require("http").createServer((_, answer) => answer.end("hello from the job")).listen(0, "127.0.0.1", function () {
  require("fs").writeFileSync("port", String(this.address().port))
  console.log("listening")
})`
const check = `const at = "http://127.0.0.1:" + require("fs").readFileSync("port")
fetch(at).then((answer) => answer.text()).then(console.log)`

const modes = [
  { sandbox: "off", skip: false },
  { sandbox: "require", skip: !Confined.isWanted }
]

for (const { sandbox, skip } of modes) {
  const env = { ASSENT_SANDBOX: sandbox }

  describe.skipIf(skip)(`a background job, with the sandbox ${sandbox}`, { concurrent: true }, () => {
    it.live("serves while the agent goes on, is listed and stopped, and leaves nothing when the chat ends", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* Program.place
          const network = sandbox === "off" ? {} : { sandbox: "network", reason: "my next command looks at it" }
          const time = aSleep()
          yield* at.write("workspace/serve.js", serve)
          yield* at.write("workspace/check.js", check)
          const model = yield* at.script(
            { tools: [background("node serve.js", network)] },
            { text: "It serves." },
            { tools: [{ name: "run_command", params: { command: "node check.js", ...network } }] },
            { text: "Checked." },
            { tools: [background(`sleep ${time}`)] },
            { text: "It sleeps." }
          )
          const screen = yield* Pseudo.start(at, ["chat", "--model", model], { columns: 100, rows: 60, env })
          const says = (line: string) => screen.type(`${line}\r`)
          // A key that comes at once was meant for something else.
          const asked = (what: string) =>
            screen
              .sees((text) => text.includes(what) && text.endsWith("answer>"))
              .pipe(Effect.zipRight(Effect.sleep("300 millis")), Effect.zipRight(screen.type("y\r")))
          yield* screen.sees((text) => text.includes("/help"))
          yield* says("serve it")
          yield* asked("run in the background, until the session ends: node serve.js")
          yield* screen.sees((text) => /job_1 runs · listening/.test(text) && text.includes("It serves."))
          yield* says("check it")
          yield* asked("run node check.js")
          yield* screen.sees((text) => text.includes("hello from the job") && text.includes("Checked."))
          yield* says("sleep")
          // In a sandbox it runs unasked: it only waits.
          if (sandbox === "off") yield* asked(`sleep ${time}`)
          yield* screen.sees((text) => text.includes("job_2 runs") && text.includes("It sleeps."))
          yield* says("/jobs")
          const list = yield* screen.sees((text) => text.includes("/jobs ID shows what one printed"))
          assert.match(list, /\njob_1 {2}node serve\.js .*\n {2}listening\njob_2 {2}sleep \d+ {2}runs for /)
          yield* says("/jobs 2")
          yield* screen.sees((text) => /\njob_2 {2}sleep \d+\n {2}It has printed nothing\./.test(text))
          yield* says("/jobs stop 1")
          const stopped = yield* screen.sees((text) => /· job_1 was stopped by \S+/.test(text))
          assert.notMatch(stopped, /✗ job_1/)
          yield* says("/jobs job_9")
          yield* screen.sees((text) => text.includes('There is no background job "job_9".'))
          assert.isAbove(sleeping(time).length, 0)
          yield* screen.type("\x03")
          yield* screen.sees((text) => text.includes("Press Ctrl-C again"))
          yield* screen.type("\x03")
          assert.strictEqual(yield* screen.exit, 0)
          assert.deepStrictEqual(sleeping(time), [])
          const records = (yield* at.allText).split("\n").filter((line) => line.includes('"kind":"job"'))
          assert.strictEqual(records.length, 1)
          assert.match(records[0] ?? "", /"class":"session","kind":"job","outcome":"done"/)
          assert.strictEqual((yield* at.call(["audit", "verify"])).code, 0)
        })
      )
    )

    it.live("leaves nothing when the program is killed: also what ignores a signal, or left its session", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* Program.place
          yield* at.write("config/permissions.json", { defaultPolicy: "allow" })
          const time = aSleep()
          const command = `setsid sleep ${time} & sh -c "trap '' TERM HUP; sleep ${time}" & echo up; sleep ${time}`
          const model = yield* at.script(
            { tools: [background(command), background(command)] },
            { text: "never said", delay: "10 minutes" }
          )
          const program = yield* at.start(["run", "--json", "--model", model, "x"], { env })
          // In any order.
          yield* program.json("JobStarted")
          yield* program.json("JobStarted")
          yield* Program.until(() => sleeping(time).length >= 6, "three of each command sleep")
          yield* program.signal("SIGKILL")
          yield* Program.until(() => sleeping(time).length === 0, "none is left")
        })
      )
    )

    it.live("ends with a run, which says so; a ninth one is refused", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* Program.place
          yield* at.write("config/permissions.json", { defaultPolicy: "allow" })
          const time = aSleep()
          const nine = Array.from({ length: 9 }, (_, index) => background(`echo ${index}; sleep ${time}`))
          const refused = { contains: "8 background jobs run already, and no more may run at once: job_1 (echo 0;" }
          const model = yield* at.script(
            { tools: nine.slice(0, 8) },
            { tools: nine.slice(8) },
            { expect: refused, text: "done" }
          )
          const { code, stderr, stdout } = yield* at.call(["run", "--model", model, "x"], { env })
          assert.deepStrictEqual({ code, stdout }, { code: 0, stdout: "done\n" }, stderr)
          for (const index of [0, 7])
            assert.include(
              stderr,
              `assent: job_${index + 1} (echo ${index}; sleep ${time}) was stopped: background jobs end with the run.\n`
            )
          assert.deepStrictEqual(sleeping(time), [])
        })
      )
    )
  })
}

describe.concurrent("a command that its call waits for, outside of the sandbox", () => {
  it.live("leaves nothing either when the program is killed, once it has run for a moment", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { defaultPolicy: "allow" })
        const time = aSleep()
        const command = `setsid sleep ${time} & sh -c "trap '' TERM HUP; sleep ${time}" & echo up; sleep ${time}`
        const model = yield* at.script({ tools: [{ name: "run_command", params: { command } }] })
        const env = { ASSENT_SANDBOX: "off" }
        const program = yield* at.start(["run", "--json", "--model", model, "x"], { env })
        yield* Program.until(() => sleeping(time).length >= 3, "three sleep")
        const groups = new Set(sleeping(time).map(groupOf))
        yield* Program.until(() => isWatched(groups), "a watcher")
        yield* program.signal("SIGKILL")
        yield* Program.until(() => sleeping(time).length === 0, "none is left")
        yield* Program.until(() => !isWatched(groups), "nor a watcher")
      })
    )
  )
})

describe.concurrent("a background job, in a chat", () => {
  it.live("goes on when plan mode begins, and ends with the session that /rewind and /resume leave: each is said", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const at = yield* Program.place
        yield* at.write("config/permissions.json", { defaultPolicy: "allow" })
        const time = aSleep()
        const model = yield* at.script({ tools: [background(`sleep ${time}`)] }, { text: "It sleeps." })
        const env = { ASSENT_SANDBOX: "off" }
        const screen = yield* Pseudo.start(at, ["chat", "--model", model], { columns: 100, rows: 60, env })
        const started = (count: number) =>
          screen.sees((text) => text.split("It sleeps.").length > count && text.endsWith(">"))
        const stopped = `job_1 (sleep ${time}) is stopped: background jobs end with their session.`
        yield* screen.sees((text) => text.includes("/help"))
        yield* screen.type("go\r")
        yield* started(1)
        yield* screen.type("/plan\r")
        yield* screen.sees((text) =>
          text.replace(/\s+/g, " ").includes(`job_1 (sleep ${time}) continues: plan mode counts for`)
        )
        assert.strictEqual(sleeping(time).length, 1)
        yield* screen.type("/mode ask\r")
        yield* screen.sees((text) => text.includes("mode: ask"))
        yield* screen.type("/rewind 0\r")
        const rewound = yield* screen.sees((text) => text.includes("Back at the beginning."))
        assert.include(rewound, stopped)
        yield* Program.until(() => sleeping(time).length === 0, "the job of the old session has ended")
        const [, first = ""] = /; (ses_\S+) stays/.exec(rewound.replace(/\s+/g, " ")) ?? []
        yield* screen.type("\u0015go\r")
        yield* started(2)
        assert.strictEqual(sleeping(time).length, 1)
        yield* screen.type(`/resume ${first}\r`)
        yield* screen.sees((text) => text.split(stopped).length > 2)
        yield* Program.until(() => sleeping(time).length === 0, "the job of the session that was left has ended")
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
      })
    )
  )
})
