import { assert, describe, it } from "@effect/vitest"
import type { UserInput } from "@effect/platform/Terminal"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as fc from "effect/FastCheck"
import * as FiberId from "effect/FiberId"
import * as ScreenLayout from "../../../src/tui/terminal/ScreenLayout.js"
import * as ScreenState from "../../../src/tui/terminal/ScreenState.js"
import * as TestTerminal from "../../kit/TestTerminal.js"
import * as Runs from "../../kit/Runs.js"

const keys: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["y", ["yes"]],
  ["n", ["no", "never"]],
  ["a", ["always", "all"]],
  ["c", ["comment"]],
  ["e", ["edit"]],
  ["1", []]
])
const rests = [...keys].map(([key, words]) => ({ key, rests: words.map((word) => word.slice(key.length)) }))

/** A person at a screen, where time goes by and single keys answer by themselves. */
const makePerson = () => {
  const lines: Array<string> = []
  const state = ScreenState.make({
    color: false,
    columns: 80,
    rows: 24,
    onLine: (text) => lines.push(text),
    onCommand: () => {},
    onInterrupt: () => {},
    onEscape: () => {},
    onShortcut: () => {},
    onEndOfInput: () => {}
  })
  let now = 1_000
  const wait = (millis: number): void => {
    now += millis
    const due = state.due()
    if (due !== undefined && due <= now) state.mature(due)
  }
  const show = (more: Partial<ScreenLayout.Question> = {}) => {
    const question = { lines: [], label: "answer> ", keys, ...more }
    const open = ScreenLayout.open("Allow?", question, Deferred.unsafeMake(FiberId.none))
    state.show(open, now)
    state.shown(open, now)
    return {
      open,
      withdraw: () => {
        state.withdraw(open, now)
        state.finish(true, now)
      },
      /** What it was answered with. */
      reply: (): string | undefined => {
        const done = Effect.runSync(Deferred.poll(open.reply))
        if (done._tag === "None") return undefined
        const reply = Effect.runSync(done.value)
        return reply._tag === "Typed" ? reply.text : reply._tag === "Left" ? "left" : reply.by
      }
    }
  }
  const press = (input: UserInput): void => void state.press([input], now)
  return {
    lines,
    state,
    wait,
    show,
    press,
    type: (text: string): void => TestTerminal.keysOf(text).forEach(press),
    finish: (): string => state.finish(false, now)
  }
}

/** After a permission was given with this key alone. */
const afterAnswer = (key: string) => {
  const person = makePerson()
  const dialog = person.show()
  person.wait(1_000)
  person.type(key)
  person.wait(300)
  assert.strictEqual(dialog.reply(), key)
  return person
}

const letter = fc.constantFrom(..."abcdelmnorstvwy1 éß日".split(""))
const words = fc.oneof(
  fc.constantFrom("maybe", "explore", "explore list src", "nothing", "yes", "e", "es", "o", "ll", "never mind", "all"),
  fc.array(letter, { minLength: 1, maxLength: 12 }).map((letters) => letters.join("")),
  fc.constantFrom(...rests.flatMap(({ rests }) => rests)),
  fc.constantFrom(...rests.flatMap(({ rests }) => rests)).map((rest) => `${rest}x`)
)
/** Keys with the pause before each. */
const typing = (text: string, pause: fc.Arbitrary<number>) =>
  fc.array(pause, { minLength: [...text].length + 1, maxLength: [...text].length + 1 }).map((pauses) => ({
    text,
    letters: [...text].map((key, at) => ({ key, pause: pauses[at] ?? 0 })),
    last: pauses.at(-1) ?? 0
  }))
const typed = (pause: fc.Arbitrary<number>) => words.chain((text) => typing(text, pause))
const answer = fc.constantFrom(...rests)
const runs = { numRuns: Runs.of(2_000) }

describe("after an answer of one key", () => {
  it("every text reaches the prompt in full, whatever it begins with and however it is typed", () => {
    fc.assert(
      fc.property(answer, typed(fc.integer({ min: 0, max: 6_000 })), ({ key }, { letters, text }) => {
        const person = afterAnswer(key)
        person.finish()
        for (const { key, pause } of letters) {
          person.wait(pause)
          person.type(key)
        }
        assert.strictEqual(person.state.draft(), text)
      }),
      runs
    )
  })

  it("Enter sends it, but never the rest of a word that answered", () => {
    fc.assert(
      fc.property(answer, typed(fc.integer({ min: 0, max: 1_999 })), ({ key, rests }, { last, letters, text }) => {
        const person = afterAnswer(key)
        person.finish()
        for (const { key, pause } of letters) {
          person.wait(pause)
          person.type(key)
        }
        person.wait(last)
        person.type("\r")
        const isWord = rests.includes(text)
        const isPart = rests.some((rest) => rest.startsWith(text))
        assert.deepStrictEqual(person.lines, isPart || text.trim() === "" ? [] : [text])
        assert.strictEqual(person.state.draft(), isPart && !isWord ? text : "")
        // What was typed can always be sent.
        if (person.state.draft().trim() !== "") person.type("\r")
        assert.deepStrictEqual(person.lines, isWord || text.trim() === "" ? [] : [text])
      }),
      runs
    )
  })

  it("the rest of its word, typed slowly, answers no other question, and stands nowhere afterwards", () => {
    const slow = fc.integer({ min: 0, max: 1_900 })
    fc.assert(
      fc.property(
        answer.chain((answer) =>
          fc.constantFrom("", ...answer.rests).chain((rest) => fc.tuple(fc.constant(answer), typing(rest, slow)))
        ),
        fc.integer({ min: 0, max: 20 }),
        fc.boolean(),
        ([{ key }, { last, letters }], opensAt, followUp) => {
          const person = afterAnswer(key)
          let other: ReturnType<typeof person.show> | undefined
          const open = () => {
            person.finish()
            other = person.show(followUp ? { followUp, paste: "insert", keys: new Map(), initial: "rm x" } : {})
          }
          letters.forEach(({ key, pause }, at) => {
            if (at === opensAt) open()
            person.wait(pause)
            person.type(key)
          })
          if (other === undefined) open()
          person.wait(last)
          person.type("\r")
          person.wait(60_000)
          assert.strictEqual(other?.reply(), undefined)
          assert.strictEqual(other?.open.editor.text, followUp ? "rm x" : "")
          assert.strictEqual(person.state.draft(), "")
          assert.deepStrictEqual(person.lines, [])
        }
      ),
      runs
    )
  })

  it("no key is lost where another question opens in the midst of it", () => {
    fc.assert(
      fc.property(
        answer,
        typed(fc.integer({ min: 0, max: 290 })),
        fc.integer({ min: 0, max: 12 }),
        ({ key }, { letters, text }, opensAt) => {
          const person = afterAnswer(key)
          person.finish()
          let other: ReturnType<typeof person.show> | undefined
          letters.forEach(({ key, pause }, at) => {
            if (at === opensAt) other = person.show()
            person.wait(pause)
            person.type(key)
          })
          const inDialog = other?.open.editor.text ?? ""
          assert.strictEqual(other?.reply(), undefined)
          assert.strictEqual([...(person.state.draft() + inDialog)].sort().join(""), [...text].sort().join(""))
          assert.include(text, inDialog)
        }
      ),
      runs
    )
  })

  it("a comment has all its letters, and no Enter of a run that began before it was seen sends it", () => {
    fc.assert(
      fc.property(typed(fc.integer({ min: 0, max: 199 })), fc.boolean(), ({ last, letters, text }, looks) => {
        const person = afterAnswer("c")
        const comment = person.show({ followUp: true, paste: "insert", keys: new Map() })
        for (const { key, pause } of letters) {
          person.wait(pause)
          person.type(key)
        }
        person.wait(last)
        assert.strictEqual(comment.open.editor.text, text)
        if (looks) person.wait(200)
        person.type("\r")
        const isRest = "omment".startsWith(text)
        if (isRest) assert.strictEqual(comment.reply(), undefined)
        else assert.strictEqual(comment.reply(), looks ? text : undefined)
        assert.deepStrictEqual(person.lines, [])
      }),
      runs
    )
  })
})

describe("a question with answers of one key", () => {
  it("is never answered by a letter of a word that is typed without a stop", () => {
    fc.assert(
      fc.property(typed(fc.integer({ min: 0, max: 299 })), ({ last, letters, text }) => {
        fc.pre(text.length > 1)
        const person = makePerson()
        const dialog = person.show()
        person.wait(1_000)
        for (const { key, pause } of letters) {
          person.wait(pause)
          person.type(key)
        }
        person.wait(3_600_000)
        assert.strictEqual(dialog.reply(), undefined)
        person.wait(last)
        person.type("\r")
        assert.strictEqual(dialog.reply(), text)
      }),
      runs
    )
  })

  it("is answered by no letter but one that was typed first, and stayed alone", () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(..."ynace1mx".split("")) },
      fc.constantFrom("backspace", "delete", "left", "home", "up")
    )
    const other = fc.constantFrom("w", "u", "y", "k")
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.oneof(
              step,
              other.map((name) => `^${name}`)
            ),
            fc.integer({ min: 0, max: 900 })
          ),
          { maxLength: 12 }
        ),
        (steps) => {
          const person = makePerson()
          const dialog = person.show()
          person.wait(1_000)
          for (const [name, pause] of steps) {
            const before = dialog.open.editor.text
            const isLetter = name.length === 1
            if (isLetter) person.type(name)
            else
              person.press(
                name.startsWith("^") ? TestTerminal.key(name.slice(1), { ctrl: true }) : TestTerminal.key(name)
              )
            person.wait(pause)
            if (dialog.reply() === undefined) continue
            assert.isTrue(isLetter && before === "" && pause >= 300, `${name} after ${before}`)
            return
          }
        }
      ),
      runs
    )
  })

  it("is never answered by what was being typed before it was there, which all stays where it was begun", () => {
    fc.assert(
      fc.property(
        typed(fc.integer({ min: 0, max: 199 })),
        fc.integer({ min: 1, max: 12 }),
        fc.boolean(),
        ({ last, letters, text }, opensAt, enters) => {
          fc.pre(text.trim() !== "")
          const person = makePerson()
          let dialog: ReturnType<typeof person.show> | undefined
          letters.forEach(({ key, pause }, at) => {
            if (at === opensAt) dialog = person.show()
            person.wait(pause)
            person.type(key)
          })
          dialog ??= person.show()
          person.wait(last)
          if (enters) person.type("\r")
          person.wait(60_000)
          assert.strictEqual(dialog.reply(), undefined)
          assert.strictEqual(dialog.open.editor.text, "")
          assert.strictEqual(enters ? person.lines[0] : person.state.draft(), text)
        }
      ),
      runs
    )
  })
})

describe("a question that goes away while an answer is typed", () => {
  it("leaves all words that are no answer to the prompt, and sends nothing that was typed on without a look", () => {
    fc.assert(
      fc.property(
        typed(fc.integer({ min: 0, max: 199 })),
        fc.integer({ min: 0, max: 12 }),
        fc.boolean(),
        ({ last, letters, text }, goesAt, looks) => {
          const person = makePerson()
          const dialog = person.show()
          person.wait(1_000)
          let before = ""
          letters.forEach(({ key, pause }, at) => {
            if (at === goesAt) {
              before = dialog.open.editor.text
              dialog.withdraw()
            }
            person.wait(pause)
            person.type(key)
          })
          if (letters.length <= goesAt) {
            before = dialog.open.editor.text
            dialog.withdraw()
          }
          const all = [...keys].flatMap(([key, words]) => [key, ...words])
          const isPart = before !== "" && all.some((word) => word.startsWith(before))
          assert.strictEqual(person.state.draft(), isPart ? text.slice(before.length) : text)
          person.wait(looks ? 2_000 : last)
          const kept = person.state.draft()
          person.type("\r")
          const isHasty = !looks && before !== ""
          assert.deepStrictEqual(person.lines, isHasty || kept.trim() === "" ? [] : [kept])
        }
      ),
      runs
    )
  })

  it("takes a password with it, also what comes after", () => {
    const person = makePerson()
    const dialog = person.show({ hidden: true, paste: "insert", keys: new Map() })
    person.wait(1_000)
    person.type("hun")
    dialog.withdraw()
    person.wait(500)
    person.type("ter2\r")
    assert.strictEqual(person.state.draft(), "")
    assert.deepStrictEqual(person.lines, [])
  })

  it("keeps the beginning of a message that went into it behind an answer", () => {
    const person = afterAnswer("y")
    person.finish()
    const other = person.show()
    person.wait(600)
    person.type("e")
    other.withdraw()
    person.type("xplore\r")
    person.wait(300)
    person.type("\r")
    assert.deepStrictEqual(person.lines, ["explore"])
  })
})
