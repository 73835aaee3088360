/** Keys of the page in a real browser, pressed while the page is busy with something else: each counts once, or is refused aloud. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Page } from "playwright-core"
import * as Interaction from "../../src/interaction/Interaction.js"
import type { ToolCallId } from "../../src/core/Id.js"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import * as Served from "../kit/Served.js"

const { act } = Console

/** A server with a session for each of these calls, whose agent asks for it: one agent asks for one call at a time. */
const asking = (...summaries: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const place = yield* Served.place
    const served = yield* Served.serve(place, place.script({ text: "done" }), { web: Console.built })
    for (const [at, argumentsSummary] of summaries.entries()) {
      const id = `session-${at}`
      yield* served.call("/v1/sessions", { id })
      yield* Console.ask(
        served,
        id,
        new Interaction.Approve({
          toolCallId: `call_${at}` as ToolCallId,
          tool: "run_command",
          argumentsSummary,
          arguments: { command: argumentsSummary },
          approvalKey: argumentsSummary,
          options: ["yes", "no", "always"].map((full) => ({ short: full.slice(0, 1), full, description: full }))
        })
      )
    }
    return { ...served, address: `${served.url}/#token=${served.token}` }
  })

/** Runs a script in the page as soon as an element is there: after its render, and before anything else happens. */
const atOnce = (page: Page, selector: string, script: string) =>
  page.addInitScript(`{
    const press = (key) =>
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))
    const observer = new MutationObserver(() => {
      if (document.querySelector(${JSON.stringify(selector)}) === null) return
      observer.disconnect()
      ${script}
    })
    observer.observe(document, { childList: true, subtree: true, attributes: true })
  }`)

/** The bodies of the answers that the page sends, in their order. */
const answersOf = (page: Page): ReadonlyArray<unknown> => {
  const sent: Array<unknown> = []
  page.on("request", (request) => {
    if (request.url().endsWith("/answer")) sent.push(request.postDataJSON().answer)
  })
  return sent
}

const isHelpOpen = (page: Page) => act(() => page.evaluate<boolean>(`document.querySelector("dialog")?.open === true`))

describe.skipIf(!Browser.isWanted)("the keys of the page", () => {
  const browser = Browser.forFile()

  for (const [when, selector] of [
    ["before the server has answered", "main"],
    ["as soon as the empty inbox is there", "main.inbox"],
    ["as soon as the first card is there", "article.card"]
  ] as const) {
    it.scopedLive(`show the help ${when}`, () =>
      Effect.gen(function* () {
        const served = yield* asking("true")
        const { page } = yield* browser.open(served.address, {}, (page) => atOnce(page, selector, `press("?")`))
        yield* Console.cards(page, 1)
        assert.isTrue(yield* isHelpOpen(page))
      })
    )
  }

  it.scopedLive("show the help in each view, and while one view makes room for another", () =>
    Effect.gen(function* () {
      const served = yield* asking("true")
      const { page } = yield* browser.open(served.address)
      yield* Console.cards(page, 1)
      for (const path of [
        "session/session-0",
        "",
        "session/session-0/history",
        "sessions",
        "",
        "new",
        "session/session-0/policy",
        ""
      ]) {
        // The page hears of its new place after this.
        yield* act(() => page.evaluate(`location.hash = "#/${path}"; document.activeElement.blur()`))
        yield* act(() => page.keyboard.press("?"))
        assert.isTrue(yield* isHelpOpen(page), path)
        yield* act(() => page.keyboard.press("Escape"))
        assert.isFalse(yield* isHelpOpen(page), path)
      }
    })
  )

  it.scopedLive("open and close the help as often as they are pressed, however fast", () =>
    Effect.gen(function* () {
      const served = yield* asking("true")
      const { page } = yield* browser.open(served.address)
      yield* Console.cards(page, 1)
      yield* Console.settle(page)
      // All of them wait until the page has time.
      const keys = ["?", "Escape", "?", "Escape", "?", "y", "Escape", "x"]
      yield* act(() =>
        Promise.all([
          page.evaluate(`{ const end = performance.now() + 500; while (performance.now() < end); }`),
          ...keys.map((key) => page.keyboard.press(key))
        ])
      )
      assert.isFalse(yield* isHelpOpen(page))
      yield* Console.sees(page, "1 marked:")
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
    })
  )

  it.scopedLive("answer a question once while the answer is on its way", () =>
    Effect.gen(function* () {
      const served = yield* asking("true")
      const { page } = yield* browser.open(served.address)
      const sent = answersOf(page)
      yield* Console.cards(page, 1)
      let go = () => {}
      const gate = new Promise<void>((resolve) => (go = resolve))
      yield* act(() => page.route("**/answer", (route) => gate.then(() => route.continue())))
      yield* Console.settle(page)
      yield* act(async () => {
        for (const key of ["y", "y", "n", "y"]) await page.keyboard.press(key)
      })
      yield* Console.sees(page, "An answer to this question is on its way.")
      go()
      yield* Console.sees(page, "Allowed by you")
      assert.deepStrictEqual(sent, ["yes"])
    })
  )

  for (const [key, answer] of [
    ["y", "yes"],
    ["n", "no"]
  ] as const) {
    it.scopedLive(`do not press ${key} again when its card comes back into the page`, () =>
      Effect.gen(function* () {
        const count = 40
        const served = yield* asking("true")
        for (let at = 1; at < count; at++)
          yield* Console.ask(served, "session-0", new Interaction.Ask({ prompt: `Question ${at}` }))
        const { page } = yield* browser.open(served.address)
        const sent = answersOf(page)
        yield* Console.sees(page, `${count} questions are open`)
        const first = page.locator("article.card", { hasText: "Allow run_command?" })
        yield* Console.settle(page)
        // The answer is lost, so the question stays open.
        yield* act(() => page.route("**/answer", (route) => route.abort()))
        yield* act(() => page.keyboard.press(key))
        yield* Console.sees(page, /Nothing was sent/)
        yield* act(() => page.unroute("**/answer"))
        for (let at = 1; at < count; at++) yield* act(() => page.keyboard.press("j"))
        yield* act(() => first.waitFor({ state: "detached" }))
        for (let at = 1; at < count; at++) yield* act(() => page.keyboard.press("k"))
        yield* act(() => first.waitFor())
        yield* Console.settle(page)
        assert.deepStrictEqual(sent, [answer])
        assert.lengthOf((yield* served.call("/v1/requests")).body.requests, count)
        yield* act(() => page.keyboard.press(key))
        yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length === count - 1)
        assert.deepStrictEqual(sent, [answer, answer])
      })
    )
  }

  it.scopedLive("answer nothing that the reader did not see when the key went down", () =>
    Effect.gen(function* () {
      const served = yield* asking("first", "second")
      // The page takes long to show that the list has moved.
      const { page } = yield* browser.open(served.address, {}, (page) =>
        atOnce(
          page,
          "article.card.ended",
          `console.log("busy"); const end = performance.now() + 1_500; while (performance.now() < end);`
        )
      )
      const sent = answersOf(page)
      yield* Console.cards(page, 2)
      yield* Console.settle(page)
      const busy = page.waitForEvent("console", (message) => message.text() === "busy")
      const [{ request }] = (yield* served.call("/v1/requests")).body.requests
      yield* served.call(`/v1/requests/${request.requestId}/answer`, { answer: "yes" })
      yield* act(async () => {
        await busy
        await page.keyboard.press("y")
      })
      yield* Console.sees(page, /The list has just moved/)
      assert.deepStrictEqual(sent, [])
      yield* Console.settle(page)
      yield* act(() => page.keyboard.press("n"))
      yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length === 0)
      assert.deepStrictEqual(sent, ["no"])
    })
  )

  it.scopedLive("take no letter of words for an answer, when the question that they were for is gone", () =>
    Effect.gen(function* () {
      const served = yield* asking("first", "second")
      const { page } = yield* browser.open(served.address)
      const sent = answersOf(page)
      yield* Console.cards(page, 2)
      yield* Console.settle(page)
      const [{ request }] = (yield* served.call("/v1/requests")).body.requests
      yield* act(async () => {
        await page.keyboard.press("c")
        await page.keyboard.type("not ")
        // Somebody who does not look up: a letter each 100 ms from the frame that shows the change, on any machine.
        await page.evaluate(`{
          const write = () => {
            let at = performance.now()
            for (const key of "yes, and any other way you can do, nay".repeat(3)) {
              const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })
              Object.defineProperty(event, "timeStamp", { value: (at += 100) })
              document.activeElement.dispatchEvent(event)
            }
            document.body.dataset.written = "all"
          }
          new MutationObserver((_, observer) => {
            if (document.querySelector(".card.ended") === null || document.querySelector(".card textarea") !== null) return
            observer.disconnect()
            requestAnimationFrame(() => requestAnimationFrame(write))
          }).observe(document, { childList: true, subtree: true, attributes: true })
        }`)
      })
      yield* served.call(`/v1/requests/${request.requestId}/answer`, { answer: "yes" })
      yield* act(() => page.locator('[data-written="all"]').waitFor())
      assert.deepStrictEqual(sent, [])
      yield* Console.sees(page, /The list has just moved/)
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
    })
  )

  it.scopedLive("act once each while events of a session stream in and the page is slow", () =>
    Effect.gen(function* () {
      const served = yield* asking("first", "second", "third")
      const { page } = yield* browser.open(served.address)
      yield* Console.cards(page, 3)
      yield* Console.settle(page)
      yield* act(async () =>
        (await page.context().newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: 6 })
      )
      yield* served.call("/v1/sessions", { id: "last" })
      const streaming = yield* Effect.fork(
        Effect.forever(
          Effect.flatMap(Console.ask(served, "last", new Interaction.Ask({ prompt: "later" })), () => Effect.sleep(20))
        )
      )
      const focused = page.locator("article.card.focused")
      for (const [key, words] of [
        ["j", "second"],
        ["j", "third"],
        ["k", "second"],
        ["ArrowUp", "first"],
        ["ArrowDown", "second"]
      ] as const) {
        yield* act(() => page.keyboard.press(key))
        assert.include(yield* Console.words(focused), words)
      }
      yield* act(() => page.keyboard.press("x"))
      yield* Console.sees(page, "1 marked:")
      yield* act(() => page.keyboard.press("?"))
      assert.isTrue(yield* isHelpOpen(page))
      yield* act(() => page.keyboard.press("Escape"))
      yield* act(() => page.keyboard.press("y"))
      yield* Served.until(served.call("/v1/requests"), ({ body }) =>
        body.requests.every(({ request }: any) => request.interaction.argumentsSummary !== "second")
      )
      yield* streaming.interruptAsFork(streaming.id())
    })
  )

  it.scopedLive("write into the words that a rewind took back, as soon as they are there", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "one" }), { web: Console.built })
      yield* served.call("/v1/sessions", { id: "one" })
      yield* served.call("/v1/sessions/one/messages", { text: "eins" })
      yield* Served.until(served.call("/v1/sessions/one/turns"), ({ body }) => body.turns[0]?.ended !== undefined)
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`, {}, (page) =>
        atOnce(
          page,
          "main",
          `let before
           new MutationObserver((_, watch) => {
             const composer = document.querySelector(".composer")
             if (!location.hash.startsWith("#/session/ses_")) before = composer
             if (composer === null || composer === before) return
             watch.disconnect()
             document.execCommand("insertText", false, "!")
           }).observe(document, { childList: true, subtree: true })`
        )
      )
      yield* Console.sees(page, "Nothing waits for you.")
      yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
      yield* act(() => page.getByRole("button", { name: "Rewind" }).click())
      yield* act(() => page.waitForURL((url) => /#\/session\/ses_/.test(url.hash)))
      const words = page.getByLabel("Words for the agent")
      yield* Served.until(
        act(() => words.inputValue()),
        (value) => value === "eins!" || value === "!eins"
      )
    })
  )
})
