import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import * as SessionName from "../../src/host/SessionName.js"
import { SessionId } from "../../src/core/Id.js"
import * as SessionStore from "../../src/journal/SessionStore.js"
import * as SessionSummary from "../../src/journal/SessionSummary.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

/** A session that was talked to once; its id. */
const said = (place: Program.Place, words: string, answer: string) =>
  Effect.gen(function* () {
    const script = yield* place.script({ text: answer }, { text: "Again." }, { text: "And again." })
    const { code, stderr } = yield* place.run(["run", "--model", script, words])
    assert.strictEqual(code, 0, stderr)
    const { stdout } = yield* place.call(["sessions", "list", "--json"])
    return String(JSON.parse(Program.linesOf(stdout)[0] ?? "{}").rootSessionId)
  })

describe.concurrent("going on with a session", () => {
  for (const columns of [120, 80, 40])
    it.live(`shows what was said last, and how to go on again, in ${columns} columns`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const id = yield* said(place, "count to two", "One, **two**.\n\n- three\n")
          const screen = yield* Pseudo.start(place, ["chat", "--continue"], { columns })
          yield* screen.sees(
            (text) => text.includes("> count to two\n") && text.includes("One, two.") && text.endsWith("\n>")
          )
          yield* screen.type("more\r")
          yield* screen.sees((text) => text.includes("Again.") && text.endsWith("\n>"))
          yield* screen.type("\x04")
          assert.strictEqual(yield* screen.exit, 0)
          // What begins a turn is no interjection, and has no mark of one.
          assert.notInclude(screen.everything(), "↳")
          assert.notInclude(screen.everything(), "> >")
          // The command stands by itself where it does not fit beside the words, and the terminal breaks it at 40 columns.
          const command = `assent chat --resume ${id}`
          const told =
            columns === 40 ? `To resume:\n${command.slice(0, 40)}\n${command.slice(40)}` : `To resume: ${command}`
          assert.include(screen.everything(), told)
        })
      )
    )

  it.live("tells what was said and done before what became of a call that was cut off", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const script = yield* place.script(
          { text: "I look **first**.", tools: [{ name: "run_command", params: { command: "echo found" } }] },
          { tools: [{ name: "run_command", params: { command: "mv hint started; sleep 60" } }] },
          { text: "On we go." }
        )
        yield* place.write("workspace/hint", "")
        // The end of the scope kills it.
        yield* Effect.scoped(
          Effect.gen(function* () {
            const screen = yield* Pseudo.start(place, ["chat", "--yolo", "--model", script])
            yield* screen.sees((text) => text.includes("/help"))
            yield* screen.type("begin\r")
            yield* place.appears("workspace/started")
          })
        )
        const screen = yield* Pseudo.start(place, ["chat", "--continue", "--yolo"])
        const seen = yield* screen.sees((text) => text.includes("On we go.") && text.endsWith("\n>"))
        // As they are said, one below the other.
        const order = [
          "> begin\n",
          "I look first.",
          "● run_command echo found",
          "✓",
          "● run_command mv hint started; sleep 60",
          "— this turn has no end yet —",
          "✗ run_command mv hint started; sleep 60 interrupted",
          "On we go."
        ]
        const found = order.map((text) => seen.indexOf(text))
        assert.isTrue(
          found.every((at, index) => at > (found[index - 1] ?? -1)),
          seen
        )
      })
    )
  )

  it.live("tells what was said in the midst of a turn before what was answered to it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const waiting = "touch started; until [ -e go ]; do sleep 0.05; done"
        const script = yield* place.script(
          { tools: [{ name: "run_command", params: { command: waiting } }] },
          { text: "Both of it." }
        )
        const first = yield* Pseudo.start(place, ["chat", "--yolo", "--model", script])
        yield* first.sees((text) => text.includes("/help"))
        yield* first.type("begin\r")
        yield* place.appears("workspace/started")
        yield* first.type("and this\r")
        yield* first.sees((text) => text.includes("from you: and this"))
        yield* place.write("workspace/go", "")
        yield* first.sees((text) => text.includes("Both of it.") && text.endsWith("\n>"))
        yield* first.type("\x04")
        assert.strictEqual(yield* first.exit, 0)
        const screen = yield* Pseudo.start(place, ["chat", "--continue", "--yolo"])
        yield* screen.sees((text) => text.includes("> begin\n  ↳ from you: and this\nBoth of it.\n"))
      })
    )
  )

  it.live("lists as many as there is room for, the last one first, and goes to the others by arrows and letters", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* said(place, "the first task", "First.")
        yield* said(place, "the second task", "Second.")
        yield* said(place, "the third task", "Third.")
        const screen = yield* Pseudo.start(place, ["--resume"], { columns: 40, rows: 5 })
        const list = yield* screen.sees((text) => text.includes("session>\n›"))
        assert.match(list, /\nsession>\n› {2}1\. just now +the third task\n {3}2\. just now +the second task$/)
        assert.notInclude(list, "first")
        yield* screen.type("\x1b[A")
        yield* screen.sees((text) => /\n› {2}3\. just now +the first task$/.test(text))
        yield* screen.type("task sec")
        yield* screen.sees((text) => /\nsession> task sec\n› {2}2\. just now +the second task$/.test(text))
        yield* screen.type("\r")
        yield* screen.sees((text) => text.includes("> the second task\nSecond.") && text.endsWith("\n>"))
      })
    )
  )

  it.live("lists one that runs in another process, as /sessions does, and says what to do about it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const first = yield* said(place, "the first task", "First.")
        yield* said(place, "the second task", "Second.")
        const other = yield* Pseudo.start(place, ["--resume", first])
        yield* other.sees((text) => text.endsWith("\n>"))
        const screen = yield* Pseudo.start(place, ["--continue"])
        yield* screen.sees((text) => text.endsWith("\n>"))
        yield* screen.type("/sessions\r")
        yield* screen.sees((text) => /the first task +running in process \d+ {2}1 turn\n/.test(text))
        yield* screen.type("/resume\r")
        yield* screen.sees((text) => /› {2}1\. just now .*the first task +running in process \d+ {2}1 turn/.test(text))
        yield* screen.type("\r")
        yield* screen.sees((text) =>
          /ses_\S+ runs in process \d+ on \S+\. Use it there, or end it first with \/quit\./.test(
            text.replace(/\n│ /g, " ")
          )
        )
        yield* other.type("/quit\r")
        assert.strictEqual(yield* other.exit, 0)
        yield* screen.type("1\r")
        yield* screen.sees((text) => text.includes("> the first task\nFirst.") && text.endsWith("\n>"))
      })
    )
  )

  it.live("picks one from a list, at the start and in a chat", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const first = yield* said(place, "the first task", "First.")
        const second = yield* said(place, "the \u001b[31msecond task", "Second.")
        const screen = yield* Pseudo.start(place, ["--resume"])
        yield* screen.sees((text) =>
          /\nsession>\n› {2}1\. just now .*second task +1 turn {2}ses_\S+\n {3}2\. just now .*the first task +1 turn {2}ses_\S+$/.test(
            text
          )
        )
        yield* screen.type("2\r")
        yield* screen.sees((text) => text.includes("> the first task\nFirst.") && text.endsWith("\n>"))
        yield* screen.type("/resume\r")
        yield* screen.sees((text) => text.includes("session>\n›"))
        yield* screen.type("nonsense")
        yield* screen.sees((text) => text.endsWith("session> nonsense"))
        yield* screen.type("\r")
        yield* screen.sees((text) => /There is no session nonsense\.[^]*session>\n›/.test(text))
        yield* screen.type("\x1b")
        yield* screen.sees((text) => text.endsWith("(back)\n>"))
        yield* screen.type(`/resume ${second.slice(0, -4)}\r`)
        yield* screen.sees((text) => text.includes("second task\nSecond.") && text.endsWith("\n>"))
        yield* screen.type(`/resume ${second}\r`)
        yield* screen.sees((text) => text.includes("That is this session."))
        // As in the list, with a mark at this one; a narrower terminal has less of each.
        yield* screen.type("/sessions\r")
        yield* screen.sees((text) =>
          /\n {2}just now .*the first task +1 turn {2}ses_\S+\n● just now .*second task +1 turn {2}ses_\S+\nTo resume one: \/resume\n/.test(
            text
          )
        )
        yield* screen.type("more\r")
        yield* screen.sees((text) => text.includes("Again.") && text.endsWith("\n>"))
        yield* screen.type("/quit\r")
        assert.strictEqual(yield* screen.exit, 0)
        assert.include(screen.everything().replaceAll("\n", ""), `--resume ${second}`)
        assert.notInclude(screen.everything().replaceAll("\n", ""), `--resume ${first}`)
      })
    )
  )

  it.live(
    "takes the beginning of an id, says which are meant when there are several, and needs a terminal for a list",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* Program.place
          const id = yield* said(place, "one", "One.")
          yield* said(place, "two", "Two.")
          const gone = yield* place.call(["run", "--resume", id.slice(4, -3), "more"])
          assert.strictEqual(gone.code, 0, gone.stderr)
          assert.include(gone.stdout, "Again.")
          const several = yield* place.call(["run", "--resume", "ses_", "more"])
          assert.strictEqual(several.code, 2)
          assert.include(several.stderr, "2 sessions begin with ses_")
          const shown = yield* place.call(["sessions", "show", id.slice(0, -3)])
          assert.strictEqual(shown.code, 0, shown.stderr)
          for (const args of [["run", "--resume"], ["run", "--resume", "--json", "x"], ["--resume"]]) {
            const { code, stderr } = yield* place.call(args)
            assert.strictEqual(code, 2)
            assert.include(stderr, "--resume without a session is for a chat at a terminal")
          }
        })
      )
  )

  it("finds a session by every beginning of its id that is its own, and never another", () => {
    const id = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(fc.uniqueArray(id, { maxLength: 8 }), id, (ids, name) => {
        const sessions = ids.map((one) =>
          SessionSummary.listed(SessionSummary.empty(SessionId.make(`ses_${one}`), 0), undefined)
        )
        const meant = ids.filter((one) => one.startsWith(name))
        const page: SessionName.Sessions["page"] = (query) => Effect.succeed(SessionStore.paged(sessions, query))
        const found = Effect.runSync(SessionName.find({ page }, name))
        if (meant.length > 1) assert.isTrue(Either.isLeft(found))
        else assert.strictEqual(Either.getOrThrow(found)?.rootSessionId, meant[0] && `ses_${meant[0]}`)
      })
    )
  })
})
