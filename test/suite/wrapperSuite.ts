/** What an interactor that wraps another one must hand on. Run over every wrapper that asks the wrapped one once. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Reply } from "../../src/interaction/InteractorPort.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as InteractionSample from "../kit/InteractionSample.js"

export const wrapperSuite = (
  name: string,
  wrap: (inner: Interactor.Service) => Effect.Effect<Interactor.Service, never, Scope.Scope>
): void => {
  describe(`${name} around another interactor`, () => {
    /** Answers everything with this, and keeps what it was given. */
    const inner = (reply: unknown) => {
      const given: Array<Interactor.Options<Interaction.Interaction> | undefined> = []
      const service: Interactor.Service = {
        id: "inner",
        relay: true,
        principal: "ada",
        roles: ["ops"],
        request: <I extends Interaction.Interaction>(_: unknown, options?: Interactor.Options<I>) => {
          given.push(options as never)
          return Effect.succeed(reply as Reply<I>)
        }
      }
      return { given, service }
    }
    const asked = InteractionSample.request(new Interaction.Confirm({ prompt: "Go on?", default: false }))
    const yes = { answer: true, by: "ada", how: "model", roles: ["ops"], more: { of: "it" } }

    it.scoped("gives what that one gave, with all that came with it", () =>
      Effect.gen(function* () {
        const outer = yield* wrap(inner(yes).service)
        assert.deepStrictEqual(yield* outer.request(yield* asked), yes as never)
      })
    )

    it.scoped("hands on all that goes with a request", () =>
      Effect.gen(function* () {
        const { given, service } = inner(yes)
        const outer = yield* wrap(service)
        const options: Required<Interactor.Options<Interaction.Confirm>> = {
          recheck: Effect.succeed(Option.none()),
          withdrawn: () => undefined,
          settled: () => {},
          ended: () => undefined,
          votes: [{ answer: true, by: "bob" }],
          vote: () => Effect.succeed("open" as const),
          upcoming: Effect.succeed([]),
          next: { by: "another" },
          halt: () => Effect.void,
          shown: Effect.succeed(() => 0)
        }
        yield* outer.request(yield* asked, options)
        assert.lengthOf(given, 1)
        for (const key of [
          "withdrawn",
          "settled",
          "ended",
          "votes",
          "vote",
          "upcoming",
          "next",
          "halt",
          "shown"
        ] as const)
          assert.strictEqual<unknown>(given[0]?.[key], options[key], key)
      })
    )

    it.scoped("has the principal and the roles of that one", () =>
      Effect.gen(function* () {
        const { id, principal, relay, roles } = yield* wrap(inner(yes).service)
        assert.deepStrictEqual({ principal, roles }, { principal: "ada", roles: ["ops"] })
        assert.strictEqual(relay, true)
        assert.isNotEmpty(id)
      })
    )

    it.scoped("fails as that one does", () =>
      Effect.gen(function* () {
        const request = yield* asked
        const failure = new InteractionCancelled({ requestId: request.requestId, by: "ada" })
        const outer = yield* wrap({ ...inner(yes).service, request: () => Effect.fail(failure) })
        assert.deepStrictEqual(yield* Effect.exit(outer.request(request)), Exit.fail(failure))
      })
    )
  })
}
