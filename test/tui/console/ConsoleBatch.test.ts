import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as fc from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/TestClock"
import * as ConsoleChannel from "../../../src/tui/console/ConsoleChannel.js"
import * as ConsolePlain from "../../../src/tui/console/ConsolePlain.js"
import * as ConsoleScreen from "../../../src/tui/console/ConsoleScreen.js"
import { RequestId, ToolCallId } from "../../../src/core/Id.js"
import * as InteractorCall from "../../../src/interaction/InteractorCall.js"
import * as Interaction from "../../../src/interaction/Interaction.js"
import * as InteractionRequest from "../../../src/interaction/InteractionRequest.js"
import type * as Interactor from "../../../src/interaction/Interactor.js"
import * as PermissionOption from "../../../src/interaction/PermissionOption.js"
import * as InteractionSample from "../../kit/InteractionSample.js"
import * as TestTerminal from "../../kit/TestTerminal.js"

interface Call {
  readonly index: number
  readonly rows: number
  readonly version: number
}

const rowsOf = ({ index, rows, version }: Call): ReadonlyArray<string> =>
  Array.from({ length: rows }, (_, row) => `row ${row} of call ${index} v${version}.`)

const form = (call: Call): Interaction.Approve =>
  Interaction.approve({
    toolCallId: ToolCallId.make(`call-${call.index}`),
    tool: "write_file",
    argumentsSummary: `call ${call.index}`,
    approvalKey: `write_file(call=${call.index})`,
    options: PermissionOption.offered({ editable: true }),
    editable: { parameters: ["text"], format: "text", current: { text: `text ${call.index}` } },
    display: { summary: `call ${call.index}`, details: rowsOf(call).join("\n"), format: "text" }
  })

type Asked = Effect.Effect<Fiber.RuntimeFiber<Interactor.Answered<Interaction.Approve>, unknown>>

const setup = (
  options: { readonly size?: { readonly columns: number; readonly rows: number }; readonly plain?: boolean } = {}
) =>
  Effect.gen(function* () {
    const terminal = yield* TestTerminal.make(options.size ?? { columns: 80, rows: 24 })
    const made =
      options.plain === true ? ConsolePlain.make({ color: false, echoes: true }) : ConsoleScreen.make({ color: false })
    const screen = yield* Effect.provide(made, terminal.layer)
    const interactor = yield* Effect.provideService(ConsoleChannel.make(), ConsoleScreen.ConsoleScreen, screen)
    yield* TestClock.adjust("1 second")
    const rest = Effect.zipRight(terminal.settle, Effect.zipRight(TestClock.adjust("600 millis"), terminal.settle))
    /** Asks about a call, beside others that are to come. */
    const ask = (call: Call, others: () => ReadonlyArray<Call>, of: number): Asked =>
      Effect.gen(function* () {
        const single = yield* InteractionSample.request(form(call))
        const place = { id: RequestId.make("the-first"), index: call.index, of }
        const upcoming = Effect.sync(() => others().map((other) => ({ index: other.index, interaction: form(other) })))
        const request = InteractionRequest.inBatch(single, place)
        const asking = yield* Effect.fork(InteractorCall.ask(interactor, request, { upcoming }))
        yield* rest
        return asking
      })
    const say = (line: string) => Effect.zipRight(terminal.type(`${line}\n`), rest)
    return { terminal, ask, say, rest }
  })

const call = (index: number, rows = 1): Call => ({ index, rows, version: 1 })
const answerOf = (asking: Fiber.RuntimeFiber<Interactor.Answered<Interaction.Approve>, unknown>) =>
  Effect.map(Fiber.join(asking), ({ answer }) => answer)

const yes: Interaction.ApproveAnswer = { decision: "allow", scope: "once" }
const no: Interaction.ApproveAnswer = { decision: "deny", scope: "once" }

describe("several approvals of one tool", () => {
  it.scoped("are one dialog, and each is answered for itself", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup()
      const asking = yield* ask(call(1), () => [call(2), call(3)], 3)
      assert.deepStrictEqual(terminal.screen(), [
        "Allow 3 calls of write_file?",
        "│ 1. call 1",
        "│    row 0 of call 1 v1.",
        "│ 2. call 2",
        "│    row 0 of call 2 v1.",
        "│ 3. call 3",
        "│    row 0 of call 3 v1.",
        "│ [y]es to all 3  [n]o to them  [s]ingly  [m]ore",
        "│ 2 y, 2 n for one alone; 2 shows it",
        "answer>"
      ])
      yield* say("2 c: use the other")
      assert.include(terminal.screen(), "│ 2. call 2 · no")
      yield* say("y")
      assert.deepStrictEqual(yield* answerOf(asking), yes)
      const second = yield* ask(call(2), () => [call(3)], 3)
      assert.deepStrictEqual(yield* answerOf(second), { ...no, comment: "use the other" })
      assert.deepStrictEqual(yield* answerOf(yield* ask(call(3), () => [], 3)), yes)
      assert.include(terminal.history(), "3. write_file: call 3 · yes, as you said")
    })
  )

  it.scoped("are allowed together only once each was seen whole", () =>
    Effect.gen(function* () {
      const { ask, rest, say, terminal } = yield* setup()
      const asking = yield* ask(call(1), () => [call(2, 40), call(3)], 3)
      assert.include(terminal.screen(), "│ 2. call 2 · not shown whole")
      yield* say("y")
      assert.include(terminal.screen(), "│ You have not seen all of 2: 2 shows that one, v shows them all.")
      yield* say("2 y")
      assert.include(terminal.screen(), "│ You have not seen all of 2: 2 shows it.")
      yield* say("2")
      // Over the whole terminal, with the question behind it: a key there is no answer.
      assert.deepStrictEqual(terminal.screen().slice(0, 3), ["2. call 2", ...rowsOf(call(2, 40)).slice(0, 2)])
      assert.include(terminal.screen().at(-1), "waits for you")
      yield* say("y")
      assert.isNull(asking.unsafePoll())
      yield* terminal.press("q")
      yield* rest
      assert.deepStrictEqual(terminal.screen().slice(-6), [
        "│ 1. call 1",
        "│ 2. call 2",
        "│ 3. call 3",
        "│ [y]es to all 3  [n]o to them  [s]ingly  [m]ore",
        "│ 2 y, 2 n for one alone; 2 shows it",
        "answer>"
      ])
      yield* say("y")
      assert.deepStrictEqual(yield* answerOf(asking), yes)
    })
  )

  it.scoped("leave out what there is no room for, which is asked later", () =>
    Effect.gen(function* () {
      const { ask, rest, say, terminal } = yield* setup({ size: { columns: 40, rows: 16 } })
      const all = Array.from({ length: 9 }, (_, at) => call(at + 1))
      const asking = yield* ask(call(1), () => all.slice(1), 9)
      assert.strictEqual(terminal.screen()[0], "Allow 5 calls of write_file?")
      yield* say("v")
      yield* terminal.press("q")
      yield* rest
      yield* say("y")
      assert.deepStrictEqual(yield* answerOf(asking), yes)
      const sixth = yield* ask(call(6), () => all.slice(6), 9)
      assert.isTrue(Option.isNone(yield* Fiber.poll(sixth)))
      assert.include(terminal.screen(), "Allow 4 calls of write_file?")
      yield* say("n")
      assert.deepStrictEqual(yield* answerOf(sixth), no)
    })
  )

  it.scoped("take an answer that lasts only where nothing is answered that it could answer again", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup()
      const asking = yield* ask(call(1), () => [call(2), call(3)], 3)
      yield* say("a")
      assert.include(terminal.history(), "│ That answer is for one call. Put its number before it, as in 1 a.")
      yield* say("2 a")
      assert.include(terminal.history(), "│ An answer that lasts goes to the first call, or singly: 1, or s.")
      yield* say("3 n")
      for (const lasting of ["1 a", "1 never", "t", "all", "1 t"]) {
        yield* say(lasting)
        assert.isTrue(Option.isNone(yield* Fiber.poll(asking)), lasting)
      }
      yield* say("1 y")
      assert.deepStrictEqual(yield* answerOf(asking), yes)
      // The last that is open still stands beside what was said about the third.
      const second = yield* ask(call(2), () => [], 3)
      yield* say("2 a")
      assert.isTrue(Option.isNone(yield* Fiber.poll(second)))
      yield* say("s")
      yield* say("a")
      assert.deepStrictEqual(yield* answerOf(second), { decision: "allow", scope: "session" })
      const third = yield* ask(call(3), () => [], 3)
      assert.isTrue(Option.isNone(yield* Fiber.poll(third)))
      yield* say("n")
      assert.deepStrictEqual(yield* answerOf(third), no)
    })
  )

  it.scoped("are a numbered list where nothing is drawn", () =>
    Effect.gen(function* () {
      const { ask, say, terminal } = yield* setup({ plain: true })
      const asking = yield* ask(call(1, 30), () => [call(2, 30)], 2)
      const told = terminal.raw().split("\n")
      for (const one of [1, 2]) assert.include(told, `│ ${one}. call ${one}`)
      for (const row of rowsOf(call(2, 30))) assert.include(told, `│    ${row}`)
      yield* say("2 n")
      yield* say("y")
      assert.deepStrictEqual(yield* answerOf(asking), yes)
      assert.deepStrictEqual(yield* answerOf(yield* ask(call(2, 30), () => [], 2)), no)
    })
  )

  it.scoped("edit one, which is asked as it was edited", () =>
    Effect.gen(function* () {
      const { ask, say } = yield* setup()
      const asking = yield* ask(call(1), () => [call(2)], 2)
      yield* say("2 e")
      yield* say(" more")
      yield* say("y")
      assert.deepStrictEqual(yield* answerOf(asking), yes)
      assert.deepStrictEqual(yield* answerOf(yield* ask(call(2), () => [], 2)), {
        decision: "edit",
        editedArguments: { text: "text 2 more" }
      })
    })
  )

  // What somebody may type, and what may happen meanwhile.
  const line = fc.oneof(
    fc.constantFrom("y", "n", "v", "s", "t", "a", "what", "m", "0 y", "99 n"),
    fc
      .tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom("y", "n", "", "c: why", "a", "x"))
      .map(([index, words]) => `${index} ${words}`.trim()),
    fc.constant("(cancel)")
  )
  const plan = fc.record({
    calls: fc.array(
      fc.record({
        rows: fc.constantFrom(1, 1, 3, 12),
        /** It asks something else when its turn comes. */
        changes: fc.boolean(),
        isSkipped: fc.boolean(),
        /** It is not known of while the first is asked. */
        isLate: fc.boolean()
      }),
      { minLength: 2, maxLength: 5 }
    ),
    lines: fc.array(line, { maxLength: 14 })
  })

  it.effect.prop(
    "have one answer each: the last that was given to what was shown, and none unseen",
    [plan],
    ([{ calls, lines }]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { ask, rest, say, terminal } = yield* setup()
          const script = [...lines]
          /** What was said about calls to come. */
          const said = new Map<number, { readonly version: number; readonly decision: "allow" | "deny" }>()
          let isSplit = false
          let asked = 0
          const at = (index: number, isAsked: boolean): Call => ({
            index,
            rows: calls[index - 1]?.rows ?? 1,
            version: calls[index - 1]?.changes === true && isAsked ? 2 : 1
          })
          const shown = new Set<string>()
          const look = () => terminal.history().forEach((row) => shown.add(row.replace(/^│ +/, "")))
          const wasSeen = (one: Call): boolean => {
            look()
            return rowsOf(one).every((row) => shown.has(row))
          }
          /** Reads to the end of what is over the question, and goes back to it. */
          const read = Effect.gen(function* () {
            for (let page = 0; page < 10 && terminal.screen().at(-1)?.includes("q goes back to it") === true; page++) {
              look()
              yield* terminal.press(page < 9 ? "space" : "q")
            }
            yield* rest
          })
          for (const [position, { isSkipped }] of calls.entries()) {
            if (isSkipped && position > 0) continue
            const index = position + 1
            const first = at(index, asked > 0)
            const isFirst = asked === 0
            const others = calls.flatMap((other, place) =>
              place > position && !other.isSkipped && !(other.isLate && isFirst) ? [at(place + 1, false)] : []
            )
            const before = said.get(index)
            said.delete(index)
            const asking = yield* ask(first, () => others, calls.length)
            asked++
            const expected = before?.version === first.version ? before.decision : undefined
            let last = expected
            let isLasting = false
            const isTogether = () => !isSplit && (others.length > 0 || together)
            const together = said.size > 0
            while (Option.isNone(yield* Fiber.poll(asking))) {
              assert.isUndefined(expected, "what was said about exactly this answers it")
              const typed = script.shift() ?? "n"
              if (typed === "(cancel)") {
                yield* Fiber.interrupt(asking)
                break
              }
              const listed = [first, ...others]
              const open = listed.filter((one) => one === first || said.get(one.index)?.version !== one.version)
              const [, number, words] = /^(\d+) ?(.*)$/.exec(typed) ?? []
              if (!isTogether()) {
                if (typed === "y") last = "allow"
                if (typed === "n") last = "deny"
                if (typed === "a" || typed === "t") [last, isLasting] = ["allow", true]
              } else if (typed === "s") {
                isSplit = true
                said.clear()
              } else if (typed === "n" || (typed === "y" && open.every(wasSeen))) {
                const decision = typed === "y" ? "allow" : "deny"
                last = decision
                for (const one of open) if (one !== first) said.set(one.index, { version: one.version, decision })
              } else if (number !== undefined) {
                const one = listed.find(({ index }) => index === Number(number))
                if (one !== undefined && (words === "n" || words === "c: why" || (words === "y" && wasSeen(one)))) {
                  const decision = words === "y" ? "allow" : "deny"
                  if (one === first) last = decision
                  else said.set(one.index, { version: one.version, decision })
                }
                if (one === first && words === "a" && said.size === 0 && wasSeen(one))
                  [last, isLasting] = ["allow", true]
              } else if (typed === "t" && said.size === 0 && wasSeen(first)) [last, isLasting] = ["allow", true]
              yield* say(typed)
              yield* read
            }
            yield* rest
            const exit = yield* Fiber.await(asking)
            if (Exit.isFailure(exit)) {
              assert.isTrue(Exit.isInterrupted(exit))
              continue
            }
            const { answer } = exit.value
            assert.strictEqual(answer.decision, last)
            if (answer.decision === "allow") {
              assert.isTrue(wasSeen(first), "it was shown whole")
              assert.strictEqual(answer.scope !== "once", isLasting)
              // What lasts decides the others.
              if (isLasting) return
            }
          }
        })
      ),
    { fastCheck: { numRuns: 40 } }
  )
})
