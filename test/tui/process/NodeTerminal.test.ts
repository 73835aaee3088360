import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { UserInput } from "@effect/platform/Terminal"
import { PassThrough, Writable } from "node:stream"
import * as NodeTerminal from "../../../src/tui/process/NodeTerminal.js"

/** Two streams that say they are a terminal, and what was done to them. */
const fakeTerminal = () => {
  const modes: Array<boolean> = []
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => modes.push(mode) })
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 33, rows: 11 })
  return { input, output, modes, terminal: NodeTerminal.make({ input, output }) }
}

const take = (keys: Mailbox.ReadonlyMailbox<UserInput>, count: number) =>
  Effect.map(keys.takeN(count), ([taken]) =>
    Chunk.toReadonlyArray(taken).map(({ input, key }) => {
      const modifiers = (key.ctrl ? "ctrl-" : "") + (key.meta ? "meta-" : "") + (key.shift ? "shift-" : "")
      return modifiers + (key.name === "" ? Option.getOrElse(input, () => "?") : key.name)
    })
  )

describe("NodeTerminal", () => {
  it.scopedLive("turns bytes into keys, pastes and all", () =>
    Effect.gen(function* () {
      const { input, terminal } = fakeTerminal()
      const keys = yield* terminal.readInput
      input.write("aB é日\r\x03\x04\x1b[A\x1bb\x1b\r\x7f")
      assert.deepStrictEqual(yield* take(keys, 12), [
        "a",
        "shift-b",
        "space",
        "é",
        "日",
        "return",
        "ctrl-c",
        "ctrl-d",
        "up",
        "meta-b",
        "meta-return",
        "backspace"
      ])
      input.write("\x1b[200~x\ry\x1b[201~")
      assert.deepStrictEqual(yield* take(keys, 5), ["paste-start", "x", "return", "y", "paste-end"])
    })
  )

  for (const [what, sequence] of [
    ["where the mouse is", "\x1b[<0;10;5M"],
    ["where the mouse was let go", "\x1b[<0;10;5m"],
    ["where the mouse is, in characters", "\x1b[M !!"],
    ["the focus", "\x1b[I"],
    ["what terminal it is", "\x1b[?1;2c"],
    ["where the cursor is", "\x1b[5;10R"],
    ["a key as others write it", "\x1b[27;5;97~"],
    ["a key that has a number", "\x1b[57441u"],
    ["a key that was let go", "\x1b[97;1:3u"],
    ["a colour", "\x1b]11;rgb:0000/0000/0000\x1b\\"],
    ["a colour, with a bell", "\x1b]11;rgb:0000/0000/0000\x07"],
    ["a capability", "\x1bP1+r544e\x1b\\"]
  ] as const)
    it.scopedLive(`takes nothing for typed of a report that tells ${what}`, () =>
      Effect.gen(function* () {
        const { input, terminal } = fakeTerminal()
        const keys = yield* terminal.readInput
        input.write(`a${sequence}b${sequence}${sequence}\x1b[A\r`)
        const taken: Array<string> = []
        while (taken.at(-1) !== "return") taken.push(...(yield* take(keys, 1)))
        // What has neither a name nor a character is no key to anybody.
        assert.deepStrictEqual(
          taken.filter((key) => !/^(meta-|shift-)*(\?|p|\]|undefined)$/.test(key)),
          ["a", "b", "up", "return"]
        )
      })
    )

  it.scopedLive("loses no character of a paste, nor of words behind half a report", () =>
    Effect.gen(function* () {
      const { input, terminal } = fakeTerminal()
      const keys = yield* terminal.readInput
      input.write("\x1b[200~\x1b]0;ab\x1b[201~c")
      const pasted = yield* take(keys, 8)
      assert.deepStrictEqual(pasted.slice(-6), ["0", ";", "a", "b", "paste-end", "c"])
      input.write("\x1b]")
      yield* take(keys, 1)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      input.write("12")
      assert.deepStrictEqual(yield* take(keys, 2), ["1", "2"])
      input.write("\x1b]x\x1b[<0\ry")
      assert.deepStrictEqual((yield* take(keys, 4)).slice(1), ["x", "return", "y"])
    })
  )

  it.scopedLive("takes many lines at once for a paste, with what follows before a pause", () =>
    Effect.gen(function* () {
      const { input, terminal } = fakeTerminal()
      const keys = yield* terminal.readInput
      const typed = ["a", "return", "b", "return", "enter"]
      input.write("a\rb\r\n".repeat(5))
      input.write("d\r")
      const pasted = Array.from({ length: 5 }, () => typed).flat()
      assert.deepStrictEqual(yield* take(keys, 29), ["paste-start", ...pasted, "d", "return", "paste-end"])
      input.write("y\r".repeat(9))
      assert.deepStrictEqual(
        yield* take(keys, 18),
        Array.from({ length: 9 }, () => ["y", "return"]).flat(),
        "fewer are typed ahead"
      )
      input.write("e\r".repeat(10))
      yield* take(keys, 21)
      input.write(`\x1b[200~${"f\r".repeat(10)}\x1b[201~`)
      const marked = yield* take(keys, 23)
      assert.deepStrictEqual(marked.slice(0, 3), ["paste-end", "paste-start", "f"], "what is marked is marked once")
      assert.strictEqual(marked.at(-1), "paste-end")
    })
  )

  it.scopedLive("tells of a change of size by a key, and answers with the new one", () =>
    Effect.gen(function* () {
      const { output, terminal } = fakeTerminal()
      const keys = yield* terminal.readInput
      output.columns = 20
      output.emit("resize")
      assert.deepStrictEqual(yield* take(keys, 1), ["resize"])
      assert.strictEqual(yield* terminal.columns, 20)
      assert.strictEqual(yield* terminal.rows, 11)
      assert.isTrue(yield* terminal.isTTY)
    })
  )

  it.live("holds raw mode while its scope is open, and leaves no listener behind", () =>
    Effect.gen(function* () {
      const { input, output, modes, terminal } = fakeTerminal()
      const [atExit, onResize] = [process.listenerCount("exit"), output.listenerCount("resize")]
      const scope = yield* Scope.make()
      const keys = yield* Scope.extend(terminal.readInput, scope)
      assert.deepStrictEqual(modes, [true])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(modes, [true, false])
      assert.strictEqual(input.listenerCount("keypress"), 0)
      assert.strictEqual(process.listenerCount("exit"), atExit)
      assert.strictEqual(output.listenerCount("resize"), onResize)
      assert.isTrue(input.isPaused())
      const [, done] = yield* keys.takeAll
      assert.isTrue(done)
    })
  )

  it.scopedLive("gives raw mode and the cursor back when the process ends", () =>
    Effect.gen(function* () {
      const { output, modes, terminal } = fakeTerminal()
      const before = process.listeners("exit")
      yield* Effect.asVoid(terminal.readInput)
      const [ours] = process.listeners("exit").filter((listener) => !before.includes(listener))
      ours?.(0)
      assert.deepStrictEqual(modes, [true, false])
      assert.strictEqual(String(output.read()), "\x1b[?2004l\x1b[?25h")
    })
  )

  it.scopedLive("leaves a pipe alone and ends with it", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      const terminal = NodeTerminal.make({ input, output: new PassThrough() })
      const keys = yield* terminal.readInput
      input.end("hi\n")
      assert.deepStrictEqual(yield* take(keys, 3), ["h", "i", "enter"])
      yield* keys.await
      assert.isFalse(yield* terminal.isTTY)
      assert.strictEqual(yield* terminal.columns, 0)
    })
  )

  it.scopedLive("ends at once on input that has ended before", () =>
    Effect.gen(function* () {
      const input = new PassThrough()
      input.destroy()
      const keys = yield* NodeTerminal.make({ input, output: new PassThrough() }).readInput
      const [, done] = yield* keys.takeAll
      assert.isTrue(done)
    })
  )

  it.live("reads a line, and quits at the end of input and on Ctrl-C", () =>
    Effect.gen(function* () {
      const line = (text: string) => {
        const { input, terminal } = fakeTerminal()
        input.end(text)
        return Effect.either(terminal.readLine)
      }
      assert.include(yield* line("abx\x7fc\r"), { right: "abc" })
      assert.include(yield* line("cut off"), { right: "cut off" })
      assert.strictEqual((yield* Effect.flip(yield* line("")))._tag, "QuitException")
      assert.strictEqual((yield* Effect.flip(yield* line("ab\x03\r")))._tag, "QuitException")
    })
  )

  it.scopedLive("writes, and fails in words when that is not possible", () =>
    Effect.gen(function* () {
      const { output, terminal } = fakeTerminal()
      yield* terminal.display("hello")
      assert.strictEqual(String(output.read()), "hello")
      const broken = NodeTerminal.make({
        input: new PassThrough(),
        output: new Writable({ write: (_chunk, _encoding, callback) => callback(new Error("EPIPE")) })
      })
      yield* Effect.asVoid(broken.readInput)
      const error = yield* Effect.flip(broken.display("hello"))
      assert.include(error.message, "terminal is gone")
    })
  )
})
