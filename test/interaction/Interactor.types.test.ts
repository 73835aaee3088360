/**
 * That somebody may be asked is in the type: what must not compile, and what the rest is.
 *
 * @effect-diagnostics missingEffectContext:skip-file
 * @effect-diagnostics floatingEffect:skip-file
 */
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Confirm } from "../../src/interaction/Interaction.js"
import type { InteractionError } from "../../src/interaction/InteractionError.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as Agent from "../../src/runtime/Agent.js"
import type { AgentRuntime } from "../../src/runtime/AgentRuntime.js"
import * as InteractionSample from "../kit/InteractionSample.js"

const { samples } = InteractionSample
const inside: Interactor.Service = { id: "inside", relay: false, request: () => Effect.never }
const outsider = Interactor.layer(inside)

describe("the types", () => {
  const program = Interactor.ask(new Confirm({ prompt: "Deploy?", default: false }))

  it("say that a program may ask somebody, what comes back and how it can fail", () => {
    expectTypeOf(program).toEqualTypeOf<Effect.Effect<boolean, InteractionError, Interactor.Interactor>>()
    expectTypeOf(Interactor.withInteractor(inside)(program)).toEqualTypeOf<
      Effect.Effect<boolean, InteractionError, never>
    >()
    expectTypeOf(Effect.provide(program, outsider)).toEqualTypeOf<Effect.Effect<boolean, InteractionError, never>>()
  })

  it("do not let a program run that nobody can answer", () => {
    const run = (effect: Effect.Effect<unknown, unknown>) => effect
    // @ts-expect-error: Interactor is missing.
    run(program)
    // @ts-expect-error: another layer does not help.
    run(Effect.provide(program, Layer.empty))
    run(Interactor.withInteractor(inside)(program))
    run(Effect.catchAll(Effect.provide(program, outsider), () => Effect.void))
  })

  it("say the same of starting an agent", () => {
    expectTypeOf(Agent.start()).toEqualTypeOf<
      Effect.Effect<Agent.Agent, never, AgentRuntime | Interactor.Interactor | Scope.Scope>
    >()
    const start = (_: Effect.Effect<unknown, unknown, AgentRuntime | Scope.Scope>) => {}
    // @ts-expect-error: Interactor is missing.
    start(Agent.start())
    start(Effect.provide(Agent.start(), outsider))
    // Whoever names the interactors has said whom to ask.
    start(Agent.startWith([inside]))
  })

  it("give every kind the answer of its own declaration", () => {
    expectTypeOf(Interactor.ask(samples.Select.interaction)).toEqualTypeOf<
      Effect.Effect<number, InteractionError, Interactor.Interactor>
    >()
    // @ts-expect-error: a kind has no handler.
    const incomplete: Interactor.Handlers = { Confirm: Interactor.declines }
    assert.isDefined(incomplete)
  })
})
