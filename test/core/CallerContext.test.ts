import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import { SyncScheduler } from "effect/Scheduler"
import * as CallerContext from "../../src/core/CallerContext.js"

class A extends Context.Tag("test/core/CallerContext/A")<A, string>() {}
class B extends Context.Tag("test/core/CallerContext/B")<B, string>() {}
class C extends Context.Tag("test/core/CallerContext/C")<C, string>() {}

const of = (services: { readonly A?: string; readonly B?: string; readonly C?: string }): Context.Context<never> =>
  Context.unsafeMake(
    new Map(Object.entries(services).map(([name, value]) => [`test/core/CallerContext/${name}`, value] as const))
  )
const shown = (context: Context.Context<never>) =>
  Object.fromEntries(
    [A, B, C].flatMap(({ key }) => (context.unsafeMap.has(key) ? [[key.at(-1), context.unsafeMap.get(key)]] : []))
  )

const Ref = FiberRef.unsafeMake("root")
const refs = <A>(around: (self: Effect.Effect<FiberRefs>) => Effect.Effect<A>) =>
  Effect.runSync(around(Effect.getFiberRefs))
type FiberRefs = Effect.Effect.Success<typeof Effect.getFiberRefs>

describe("a handler's context", () => {
  it("is what it was built with, then the caller's, then the session's", () => {
    const inner = CallerContext.handlerContext(
      of({ A: "built", B: "built", C: "built" }),
      of({ B: "caller", C: "caller" }),
      of({ C: "session" })
    )
    assert.deepStrictEqual(shown(inner), { A: "built", B: "caller", C: "session" })
  })

  it("hands on the caller's and what the handler itself provides, and nothing that it was built with", () => {
    const inner = CallerContext.handlerContext(of({ A: "built", B: "built" }), of({ B: "caller" }), of({}))
    assert.deepStrictEqual(shown(CallerContext.around(inner)), { B: "caller" })
    assert.deepStrictEqual(shown(CallerContext.around(Context.add(inner, A, "handler"))), { A: "handler", B: "caller" })
    const plain = of({ A: "a" })
    assert.strictEqual(CallerContext.around(plain), plain)
  })

  it("hands on the world of the outermost caller through handlers of handlers", () => {
    const outer = CallerContext.handlerContext(of({ A: "built" }), of({ C: "caller" }), of({}))
    const child = CallerContext.handlerContext(of({ B: "built" }), CallerContext.around(outer), of({}))
    assert.deepStrictEqual(shown(CallerContext.around(child)), { C: "caller" })
  })
})

describe("a caller", () => {
  const plain = refs((self) => self)

  it("has nothing of its own with the same values, or with initial ones", () => {
    const restored = refs((self) => Effect.zipRight(Effect.locally(Effect.void, Ref, "before"), self))
    const set = refs((self) => Effect.locally(self, Ref, "set"))
    assert.isUndefined(CallerContext.own(plain, plain, "", undefined))
    assert.isUndefined(CallerContext.own(plain, restored, "", undefined))
    assert.isUndefined(CallerContext.own(set, plain, "", undefined))
    assert.isUndefined(CallerContext.own(set, restored, "", undefined))
    assert.isDefined(CallerContext.own(plain, set, "", undefined))
    // How a fiber is run is not of its world.
    const run = refs((self) => Effect.uninterruptible(Effect.withScheduler(self, new SyncScheduler())))
    assert.isUndefined(CallerContext.own(plain, run, "", undefined))
  })

  it("has services of its own that the other context has not, but for the excepted one", () => {
    const outer = refs(Effect.provide(of({ A: "a", B: "b" })))
    const less = refs(Effect.provide(of({ A: "a" })))
    const other = refs(Effect.provide(of({ A: "a", B: "other" })))
    assert.isUndefined(CallerContext.own(outer, less, "", undefined))
    assert.isUndefined(CallerContext.own(outer, other, B.key, undefined))
    const own = CallerContext.own(outer, other, "", undefined)
    assert.deepStrictEqual(
      [...(own?.values() ?? [])].map(({ value }) => (Context.isContext(value) ? shown(value) : value)),
      [{ A: "a", B: "other" }]
    )
  })

  it("is entered for the rest of a fiber's life", () => {
    const own = CallerContext.own(
      plain,
      refs((self) => Effect.locally(self, Ref, "caller")),
      "",
      undefined
    )
    assert.isDefined(own)
    if (own === undefined) return
    const entered = Effect.updateFiberRefs((id, refs) => CallerContext.entered(id, refs, own))
    const inside = Effect.forkDaemon(Effect.zipRight(entered, FiberRef.get(Ref)))
    const seen = Effect.zip(Effect.flatMap(inside, Fiber.await), FiberRef.get(Ref))
    assert.deepStrictEqual(Effect.runSync(seen), [Exit.succeed("caller"), "root"])
  })
})
