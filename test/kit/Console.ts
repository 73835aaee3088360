/** The web console over a server, for tests that drive it as a person does. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InteractionRequest from "../../src/interaction/InteractionRequest.js"
import type { Interaction } from "../../src/interaction/Interaction.js"
import type { Locator, Page } from "playwright-core"
import type * as Program from "./Program.js"
import * as Served from "./Served.js"
import * as Wait from "./Wait.js"

/** The directory of the built page. */
export const built = new URL("../../dist/web", import.meta.url).pathname

/** A server that was started as a program and has said where it is. */
export const serving = (place: Program.Place, args: ReadonlyArray<string>, port = "0") =>
  Effect.gen(function* () {
    const program = yield* place.start(["serve", "--port", port, ...args])
    const address = yield* program.line((text) => text.startsWith("http://"))
    const [url = "", token = ""] = address.split("/#token=")
    const call = (path: string, body?: unknown) =>
      Effect.promise(async () => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
        const answer = await fetch(`${url}${path}`, {
          headers,
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
        })
        // Bodies differ by path; each test says what it expects.
        const parsed: any = JSON.parse(await answer.text())
        return { status: answer.status, body: parsed }
      })
    /** Begins a session with words. */
    const begin = (id: string, text = "go") =>
      Effect.gen(function* () {
        yield* call("/v1/sessions", { id })
        yield* call(`/v1/sessions/${id}/messages`, { text })
      })
    return { program, address, url, token, call, begin }
  })

/** Asks this in the name of a session's agent, and waits for the end in the background. */
export const ask = <I extends Interaction>(served: Served.Served, sessionId: string, interaction: I, origin?: string) =>
  Effect.gen(function* () {
    const session = (yield* served.host.live).find(({ id }) => id === sessionId)
    if (session === undefined) return yield* Effect.dieMessage(`There is no session ${sessionId}.`)
    const { agent } = session
    const place = { sessionId: agent.id, agentPath: agent.origin.agent, origin }
    const request = { ...(yield* InteractionRequest.make(interaction)), ...place }
    return yield* Effect.fork(agent.broker.interactor.request(request))
  })

/** Does this in the browser. A script in the page has no limit of its own. */
export const act = <A>(run: () => Promise<A>): Effect.Effect<A> =>
  Effect.promise(run).pipe(
    Effect.timeoutFail({ duration: Wait.patience, onTimeout: () => new Error(`The page does not do this: ${run}`) }),
    Effect.orDie
  )

/** Waits until the inbox is the view of the page, and has this many cards that can be answered. */
export const cards = (page: Page, count: number): Effect.Effect<Locator> => {
  const found = page.locator("main.inbox article.card:not(.ended)")
  return Effect.as(
    Served.until(
      Effect.promise(() => found.count()),
      (there) => there === count
    ),
    found
  )
}

/**
 * Waits until the keys of the inbox answer again, and no card is about to leave. The rule is about time: keys rest for 400 ms
 * after the list has moved.
 */
export const settle = (page: Page): Effect.Effect<unknown> =>
  Effect.promise(() =>
    page.evaluate(`new Promise((done) => {
      let [before, since] = ["", performance.now()]
      const look = () => {
        const cards = [...document.querySelectorAll("[data-request]")]
        const now = cards.map((card) => card.dataset.request).join()
        if (now !== before || cards.some((card) => card.matches(".ended"))) since = performance.now()
        before = now
        if (performance.now() - since > 450) done()
        // After a frame: the page counts from the frame that shows the change.
        else requestAnimationFrame(() => setTimeout(look))
      }
      look()
    })`)
  )

/** Waits for words on the page. */
export const sees = (page: Page, text: string | RegExp): Effect.Effect<void> =>
  Effect.promise(() => page.getByText(text).first().waitFor())

/** The words of a locator, without white space around them. */
export const words = (locator: Locator): Effect.Effect<string> =>
  Effect.promise(async () => (await locator.innerText()).trim())

/** Waits for the number of open questions, which the title has, too. */
export const isCount = (page: Page, count: number): Effect.Effect<void> =>
  Effect.promise(async () => {
    await page.locator(`[data-count="${count}"]`).waitFor({ state: "attached" })
    assert.strictEqual(await page.title(), count === 0 ? "Assent" : `(${count}) Assent`)
  })
