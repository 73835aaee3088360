import { assert, describe, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as FastCheck from "effect/FastCheck"
import * as ServerPrompts from "../../src/mcp/ServerPrompts.js"
import * as PlayedServer from "../kit/PlayedServer.js"

const parameters = [
  { name: "who", required: true },
  { name: "how", required: false }
]

const server = (prompts: Parameters<typeof PlayedServer.offering>[1]) =>
  PlayedServer.offering(PlayedServer.make("docs", {}), prompts)

describe("a prompt of a server", () => {
  it("takes words in order, words by name, quoted words, and the rest for the last parameter", () => {
    const cases: ReadonlyArray<readonly [rest: string, args: Record<string, string>]> = [
      ["", {}],
      ["Ada", { who: "Ada" }],
      ["Ada very kindly", { who: "Ada", how: "very kindly" }],
      ['"Ada Lovelace" kindly', { who: "Ada Lovelace", how: "kindly" }],
      ["how=kindly Ada Lovelace", { who: "Ada Lovelace", how: "kindly" }],
      ["who='A B' how=", { who: "A B", how: "how=" }],
      ["colour=red", { who: "colour=red" }]
    ]
    for (const [rest, args] of cases)
      assert.deepStrictEqual(ServerPrompts.argumentsOf({ parameters }, rest), args, rest)
  })

  it("takes no argument that the prompt has not, whatever is written", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string(), FastCheck.array(FastCheck.string()), (rest, names) => {
        const args = ServerPrompts.argumentsOf({ parameters: names.map((name) => ({ name, required: true })) }, rest)
        assert.includeMembers([...names], Object.keys(args))
        assert.isTrue(Object.values(args).every((value) => typeof value === "string" && value !== ""))
      })
    )
  })

  it.effect("is got from its server, and reaches the model as foreign text behind a sentence of the person", () =>
    Effect.gen(function* () {
      const { words } = ServerPrompts.make([server({ greet: { parameters, text: ({ who }) => `Greet ${who}.` } })])
      assert.strictEqual(
        yield* words("/mcp:docs:greet Ada"),
        'Do what the prompt greet of the server docs says. I chose it.\n<foreign-text source="mcp:docs">\nGreet Ada.\n</foreign-text>'
      )
    })
  )

  it.effect("that cannot be sent is refused with a sentence", () =>
    Effect.gen(function* () {
      const { words } = ServerPrompts.make([
        server({ greet: { parameters, text: () => "" } }),
        PlayedServer.make("empty", {})
      ])
      const lines = ["/mcp:no:greet", "/mcp:docs:no", "/mcp:docs:greet", "/mcp:empty:x"]
      assert.deepStrictEqual(yield* Effect.forEach(lines, (line) => Effect.flip(words(line))), [
        "There is no server no. Servers: assent mcp",
        "The server docs has no prompt no. It has /mcp:docs:greet.",
        "The prompt needs arguments: /mcp:docs:greet WHO [HOW]",
        "The server empty offers no prompts."
      ])
    })
  )

  it.effect("is a command as long as its name can be typed, and once its server offers it", () =>
    Effect.gen(function* () {
      const text = () => ""
      const docs = server({ greet: { parameters, text }, "two words": { text }, "hid\u200bden": { text } })
      const { commands } = ServerPrompts.make([docs])
      const [first, second] = yield* Stream.runCollect(
        Stream.take(
          Stream.tap(commands, () => Effect.sync(() => docs.offer({ other: { text } }))),
          2
        )
      ).pipe(Effect.map(Chunk.toReadonlyArray))
      assert.deepStrictEqual(
        [first, second].map((all) => all?.map(({ name }) => name)),
        [["mcp:docs:greet"], ["mcp:docs:other"]]
      )
    })
  )
})
