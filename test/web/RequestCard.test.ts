/** The card of every kind, in a real browser, over a server of this process that asks each of them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import type { Page } from "playwright-core"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import { kinds, password, samples } from "../kit/InteractionSample.js"
import * as Served from "../kit/Served.js"

const { act } = Console

/** What a person does to give the sample's answer. */
const hands: { readonly [K in Interaction.Kind]: (page: Page) => Promise<unknown> } = {
  Approve: async (page) => {
    await page.getByRole("button", { name: "Deny with words" }).click()
    await page.getByRole("textbox").fill("not here")
    await page.getByRole("button", { name: "Deny", exact: true }).click()
  },
  grantStageTool: async (page) => {
    await page.getByLabel("Note").fill("this time")
    await page.getByRole("button", { name: "Allow" }).click()
  },
  approveSubagentEnvelope: (page) => page.getByRole("button", { name: "Allow" }).click(),
  Clarify: async (page) => {
    await page.getByLabel("postgres").check()
    await page.getByLabel(/^Why\?/).fill("it scales")
    await page.getByRole("button", { name: "Send answer" }).click()
  },
  Ask: async (page) => {
    await page.getByRole("textbox").fill("Ada")
    await page.keyboard.press("Control+Enter")
  },
  Select: async (page) => {
    await page.getByLabel("green").check()
    await page.getByRole("button", { name: "Send answer" }).click()
  },
  Confirm: async (page) => {
    await page.getByLabel("Yes", { exact: true }).check()
    await page.getByRole("button", { name: "Send answer" }).click()
  },
  Elicit: async (page) => {
    await page.getByLabel("America").check()
    await page.getByRole("textbox", { name: "Name" }).fill("web")
    for (const flag of ["fast", "safe"]) await page.getByLabel(flag).check()
    // What the form refuses is said at its field, and nothing is sent.
    await page.getByRole("textbox", { name: "port" }).fill("many")
    await page.getByRole("button", { name: "Send answer" }).click()
    await page.getByText("That is no number.").waitFor()
    await page.getByRole("textbox", { name: "port" }).fill("70000")
    await page.getByRole("button", { name: "Send answer" }).click()
    await page.locator(".field .problem").waitFor()
    await page.getByRole("textbox", { name: "port" }).fill("443")
    await page.getByRole("group", { name: /^tls/ }).getByLabel("No", { exact: true }).check()
    await page.getByRole("textbox", { name: "mail" }).fill("ada@example.com")
    await page.getByRole("button", { name: "Send answer" }).click()
  },
  "Auth.DeviceCode": async (page) => {
    await page.getByRole("link", { name: "https://example.com/device" }).waitFor()
    await page.getByText("WDJB").waitFor()
    await page.getByRole("button", { name: "I have signed in" }).click()
  },
  "Auth.Password": async (page) => {
    await page.getByLabel("Password?").fill(password)
    await page.keyboard.press("Enter")
  }
}

describe.skipIf(!Browser.isWanted)("the card of a request", () => {
  const browser = Browser.forFile()

  for (const kind of kinds) {
    it.scopedLive(`takes the answer of ${kind}`, () =>
      Effect.gen(function* () {
        const place = yield* Served.place
        const served = yield* Served.serve(place, place.script({ text: "done" }), { web: Console.built })
        yield* served.call("/v1/sessions", { id: "one" })
        const sample = samples[kind]
        const asked = yield* Console.ask(served, "one", sample.interaction)
        const seen = yield* browser.open(`${served.url}/#token=${served.token}`)
        yield* Console.cards(seen.page, 1)
        yield* act(() => hands[kind](seen.page))
        const reply = yield* Fiber.join(asked)
        const given: unknown = Redacted.isRedacted(reply.answer) ? Redacted.value(reply.answer) : reply.answer
        const wanted: unknown = Redacted.isRedacted(sample.answer) ? Redacted.value(sample.answer) : sample.answer
        assert.deepStrictEqual(given, wanted)
        assert.strictEqual(reply.by, "ada")
        yield* Console.cards(seen.page, 0)
        Browser.isQuiet(seen)
      })
    )
  }

  it.scopedLive("says who asks through the agent, cancels a question, and shows a held plan", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = place.script(
        { tools: [{ name: "propose_plan", params: { plan: "# The plan\n\n- read\n- write" } }] },
        { text: "ok" }
      )
      const served = yield* Served.serve(place, model, { web: Console.built })
      yield* served.call("/v1/sessions", { id: "one" })
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`)
      const asked = yield* Console.ask(served, "one", samples.Ask.interaction, "the server github")
      yield* Console.sees(page, "Asked by the server github, through the agent.")
      yield* act(() => page.getByRole("button", { name: "Cancel" }).click())
      assert.isTrue(Either.isLeft(yield* Effect.either(Fiber.join(asked))))
      yield* served.call("/v1/sessions/one/mode", { mode: "plan" })
      yield* served.call("/v1/sessions/one/messages", { text: "plan it" })
      yield* Console.sees(page, "Begin with this plan?")
      yield* Console.sees(page, "The agent waits with its work until you decide")
      assert.strictEqual(yield* act(() => page.getByRole("heading", { name: "The plan" }).count()), 1)
      yield* act(() => page.getByRole("button", { name: "Begin", exact: true }).click())
      yield* Served.until(served.call("/v1/sessions/one"), ({ body }) => body.mode === "ask")
    })
  )
})
