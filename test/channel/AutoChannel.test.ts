import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as AutoChannel from "../../src/channel/AutoChannel.js"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import { interactorSuite } from "../suite/interactorSuite.js"

interactorSuite("AutoChannel", {
  claims: ["Clarify", "Ask", "Select", "Confirm", "Elicit"],
  automatic: true,
  make: Effect.succeed({ interactor: AutoChannel.make() })
})

describe("AutoChannel", () => {
  const form = new Interaction.Clarify({
    context: "",
    questions: [
      { text: "a", question_type: "single_choice", choices: ["x", "y"], required: true, default_choice: 2 },
      { text: "b", question_type: "multiple_choice", choices: ["x", "y"], required: true },
      { text: "c", question_type: "free_text", choices: [], required: true }
    ]
  })

  it.effect("takes defaults, first choices and the configured text, and says that nobody answered", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Interactor.request(form), {
        answer: {
          "1": { selected: 2, text: "y" },
          "2": { selected: [1], texts: ["x"] },
          "3": { value: "whatever you like" }
        },
        by: "auto",
        how: "auto"
      })
      assert.strictEqual(yield* Interactor.ask(new Interaction.Confirm({ prompt: "?", default: true })), true)
      assert.strictEqual(yield* Interactor.ask(new Interaction.Confirm({ prompt: "?", default: false })), false)
      assert.strictEqual(yield* Interactor.ask(new Interaction.Select({ prompt: "?", options: ["a", "b"] })), 0)
      assert.strictEqual(yield* Interactor.ask(new Interaction.Ask({ prompt: "?" })), "whatever you like")
    }).pipe(Effect.provide(AutoChannel.layer({ freeText: "whatever you like" })))
  )
})
