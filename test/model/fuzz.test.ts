/**
 * Good streams of every format, with events and fields dropped, doubled, swapped and changed at random. Whatever comes of
 * it, an answer ends with what arrived or fails in words: never by a defect, never with a call that nobody wrote.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Model from "../../src/model/Model.js"
import * as ModelRegistry from "../../src/model/ModelRegistry.js"
import { ask, key, asker, tools } from "../kit/ModelSample.js"
import * as Runs from "../kit/Runs.js"
import type { Call, Wire } from "../kit/Wire.js"
import { wires } from "../kit/Wire.js"

const calls: ReadonlyArray<Call> = [
  { id: "call_a", name: "read_file", args: '{"path":"src/a.txt","limit":3}' },
  { id: "call_b", name: "now", args: "{}" },
  { id: "call_c", name: "read_file", args: '{"path":"src/b.txt"}' }
]

const streams = (wire: Wire): ReadonlyArray<ReadonlyArray<string>> => [
  wire.events({ text: ["Hel", "lo"] }),
  wire.events({ thinking: "Hm.", text: ["Looking."], calls }),
  wire.events({ calls: calls.slice(0, 1), usage: { input: 120, output: 7, cached: 100 } }),
  wire.events({ thinking: "Only thoughts." })
]

// -----------------------------------------------------------------------------------------------------------------
// what is done to a stream
// -----------------------------------------------------------------------------------------------------------------

/** None of these is a tool's name, an id or the arguments of a call. */
const strange = FastCheck.constantFrom<unknown>(
  null,
  undefined,
  0,
  -1,
  1e300,
  "",
  " ",
  "brand_new",
  "\u0000\ud800",
  true,
  [],
  {},
  [null],
  { type: "brand_new", nested: { deep: [1, { two: 3 }] } },
  [[], "x", 4, { a: null }]
)

interface Change {
  readonly kind: "drop" | "double" | "swap" | "field" | "unset" | "add" | "insert" | "cut" | "garble"
  /** Of the event, and of what is changed in it. */
  readonly at: number
  readonly where: number
  readonly value: unknown
}

const change: FastCheck.Arbitrary<Change> = FastCheck.record({
  kind: FastCheck.constantFrom<Change["kind"]>(
    ...([
      "drop",
      "double",
      "swap",
      "field",
      "field",
      "field",
      "unset",
      "unset",
      "add",
      "insert",
      "cut",
      "garble"
    ] as const)
  ),
  at: FastCheck.nat(1000),
  where: FastCheck.nat(1000),
  value: strange
})

/** Every place in a value that holds something, as a path. */
const paths = (value: unknown, path: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, member]) => [[...path, name], ...paths(member, [...path, name])])

const changed = (value: unknown, path: ReadonlyArray<string>, use: (holder: any, name: string) => void): unknown => {
  const copy = structuredClone(value)
  const holder = path.slice(0, -1).reduce<any>((inner, name) => inner[name], copy)
  use(holder, path.at(-1) ?? "")
  return copy
}

const inEvent = (event: string, use: (json: unknown) => unknown): string => {
  const at = event.indexOf("data: ")
  const data = event.slice(at + "data: ".length).trim()
  return data === "[DONE]" ? event : `${event.slice(0, at)}data: ${JSON.stringify(use(JSON.parse(data)))}\n\n`
}

const apply = (events: ReadonlyArray<string>, { at, kind, value, where }: Change): ReadonlyArray<string> => {
  if (events.length === 0) return events
  const index = at % events.length
  const event = events[index] ?? ""
  const replaced = (use: (json: any) => unknown) => events.with(index, readable(event) ? inEvent(event, use) : event)
  switch (kind) {
    case "drop":
      return events.toSpliced(index, 1)
    case "double":
      return events.toSpliced(index, 0, event)
    case "swap":
      return events.with(index, events[where % events.length] ?? "").with(where % events.length, event)
    case "cut":
      return events.slice(0, index)
    case "insert":
      return events.toSpliced(index, 0, `data: ${JSON.stringify(value) ?? "null"}\n\n`)
    case "garble":
      return events.with(index, event.slice(0, where % (event.length + 1)))
    case "add":
      return replaced((json) =>
        typeof json === "object" && json !== null ? { ...json, [`new_${where}`]: value } : json
      )
    case "field":
    case "unset":
      return replaced((json) => {
        const all = paths(json)
        const path = all[where % Math.max(1, all.length)]
        if (path === undefined) return json
        return changed(json, path, (holder, name) => {
          if (kind === "field") holder[name] = value
          else if (Array.isArray(holder)) holder.splice(Number(name), 1)
          else delete holder[name]
        })
      })
  }
}

const readable = (event: string): boolean => {
  const data = event.slice(event.indexOf("data: ") + "data: ".length).trim()
  try {
    JSON.parse(data)
    return event.includes("data: ")
  } catch {
    return false
  }
}

// -----------------------------------------------------------------------------------------------------------------
// what must hold
// -----------------------------------------------------------------------------------------------------------------

/** The answer of a server that sends this body, with no network in between. */
const answerTo = (wire: Wire, body: string) =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry.make({
      keys: { [wire.provider]: Redacted.make(key) },
      baseUrls: { [wire.provider]: `http://localhost:1${wire.basePath}` }
    })
    const model = yield* registry.resolve(`${wire.provider}/${wire.model}`)
    const seen: Array<Model.Part> = []
    const run = Stream.runForEachChunk(model.stream({ ...asker, prompt: ask, tools }), (chunk) =>
      Effect.sync(() => void seen.push(...Chunk.toReadonlyArray(chunk)))
    )
    return { exit: yield* Effect.exit(run), seen }
  }).pipe(
    Effect.provide(FetchHttpClient.layer),
    Effect.provideService(FetchHttpClient.Fetch, () =>
      Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }))
    )
  )

const isModelError = Schema.is(Model.ModelError)

/** Arguments that can be taken hold what was sent, and what the test has put there. */
const isSent = (params: unknown): boolean => {
  if (typeof params === "string") return true
  const written = calls.map(({ args }) => args).join(" ")
  const words = JSON.stringify(params).split(/[^\w./-]+/)
  return words.every((word) => written.includes(word) || strangeWords.includes(word))
}

const strangeWords = [
  "brand_new",
  "nested",
  "deep",
  "two",
  "1",
  "3",
  "type",
  "null",
  "true",
  "1e",
  "300",
  "-1",
  "0",
  "4",
  "x",
  "a",
  "u0000",
  "ud800"
]

const check = (wire: Wire, body: string) =>
  Effect.gen(function* () {
    const { exit, seen } = yield* answerTo(wire, body)
    if (Exit.isFailure(exit)) {
      assert.isFalse(Cause.isDie(exit.cause), Cause.pretty(exit.cause))
      const error = Cause.squash(exit.cause)
      assert.isTrue(isModelError(error), Cause.pretty(exit.cause))
      assert.match((error as Model.ModelError).message, /^[^:]+: .+\. [A-Z]/)
    } else {
      assert.strictEqual(seen.at(-1)?.type, "finish")
    }
    // A call comes whole or not at all: announced, then handed on once, under an id of its own and a name that was sent.
    const called = seen.flatMap((part) => (part.type === "tool-call" ? [part] : []))
    assert.strictEqual(new Set(called.map(({ id }) => id)).size, called.length)
    for (const { id, name, params } of called) {
      assert.include(["read_file", "now", "brand_new", "\u0000\ud800"], name)
      assert.isAbove(id.length, 0)
      assert.isTrue(isSent(params), JSON.stringify(params))
      const types = seen.flatMap((part) => ("id" in part && part.id === id ? [part.type] : []))
      assert.deepStrictEqual([types[0], ...types.slice(-2)], ["tool-params-start", "tool-params-end", "tool-call"])
    }
    // Blocks are opened and closed in turn.
    let open: string | undefined
    for (const part of seen) {
      if (part.type === "text-start" || part.type === "reasoning-start") {
        assert.isUndefined(open)
        open = part.id
      } else if (part.type === "text-delta" || part.type === "reasoning-delta") assert.strictEqual(part.id, open)
      else if (part.type === "text-end" || part.type === "reasoning-end") {
        assert.strictEqual(part.id, open)
        open = undefined
      }
    }
    return { called, exit }
  })

for (const wire of wires) {
  describe(wire.provider, () => {
    it.effect(
      "ends or fails in words, whatever a stream has become",
      () =>
        Effect.promise(() =>
          FastCheck.assert(
            FastCheck.asyncProperty(
              FastCheck.constantFrom(...streams(wire)),
              FastCheck.array(change, { minLength: 1, maxLength: 5 }),
              (events, changes) => Effect.runPromise(Effect.asVoid(check(wire, changes.reduce(apply, events).join(""))))
            ),
            { numRuns: Runs.of(240) }
          )
        ),
      120_000
    )

    it.effect(
      "never has more calls than were sent when events are lost or changed, and none where none was",
      () =>
        Effect.promise(() =>
          FastCheck.assert(
            FastCheck.asyncProperty(
              FastCheck.constantFrom(...streams(wire)),
              FastCheck.array(change, { minLength: 1, maxLength: 4 }),
              (events, changes) =>
                Effect.runPromise(
                  Effect.gen(function* () {
                    const lossy = changes.filter(({ kind }) => !["double", "swap", "insert"].includes(kind))
                    const before = yield* check(wire, events.join(""))
                    const after = yield* check(wire, lossy.reduce(apply, events).join(""))
                    assert.isAtMost(after.called.length, before.called.length)
                  })
                )
            ),
            { numRuns: Runs.of(160) }
          )
        ),
      120_000
    )

    it.effect(
      "takes what providers add: unknown fields, events and lists change nothing",
      () =>
        Effect.promise(() =>
          FastCheck.assert(
            FastCheck.asyncProperty(
              FastCheck.constantFrom(...streams(wire)),
              FastCheck.array(change, { minLength: 1, maxLength: 6 }),
              (events, changes) =>
                Effect.runPromise(
                  Effect.gen(function* () {
                    const added = changes.map((one): Change => ({ ...one, kind: "add" }))
                    const before = yield* answerTo(wire, events.join(""))
                    const after = yield* answerTo(wire, added.reduce(apply, events).join(""))
                    const calls = (parts: ReadonlyArray<Model.Part>) =>
                      parts.map((part) => (part.type === "tool-call" ? { ...part, id: "" } : { ...part, id: "" }))
                    assert.deepStrictEqual(calls(after.seen), calls(before.seen))
                    assert.isTrue(Exit.isSuccess(after.exit))
                  })
                )
            ),
            { numRuns: Runs.of(80) }
          )
        ),
      120_000
    )
  })
}
