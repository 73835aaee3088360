/** The inbox of the built program in a real browser: every way to answer, by keyboard and by buttons. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import * as Program from "../kit/Program.js"
import * as Served from "../kit/Served.js"

const { act } = Console

const commands = (place: Program.Place, ...all: ReadonlyArray<string>) =>
  place.script(...all.map((command) => ({ tools: [{ name: "run_command", params: { command } }] })), { text: "done" })

describe.skipIf(!Browser.isWanted)("the inbox", () => {
  const browser = Browser.forFile()

  it.scopedLive("shows what is asked, why, and what always means, and allows by a key", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address, begin } = yield* Console.serving(place, ["--model", yield* commands(place, "touch made")])
      const seen = yield* browser.open(address)
      const { page } = seen
      yield* Console.sees(page, "Nothing waits for you.")
      yield* begin("one", "make a file")
      const [card] = [yield* Console.cards(page, 1)]
      yield* Console.isCount(page, 1)
      const text = yield* Console.words(card)
      for (const part of ["Allow run_command?", "touch made", "make a file", "main"]) assert.include(text, part)
      yield* Console.sees(page, /Asked about: the default is ask/)
      yield* Console.sees(page, /remembers touch made for this session/)
      yield* Console.settle(page)
      yield* act(() => page.keyboard.press("y"))
      yield* Console.sees(page, "Allowed by you")
      yield* place.appears("workspace/made")
      yield* Console.sees(page, "Nothing waits for you.")
      yield* Console.isCount(page, 0)
      assert.strictEqual(new URL(page.url()).hash, "#/")
      Browser.isQuiet(seen)
    })
  )

  it.scopedLive("denies with words for the agent, and edits with the difference in sight", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* commands(place, "touch first", "touch second")
      const { address, begin, call } = yield* Console.serving(place, ["--model", model])
      const { page } = yield* browser.open(address)
      yield* begin("one")
      yield* Console.cards(page, 1)
      yield* Console.settle(page)
      yield* act(async () => {
        await page.keyboard.press("c")
        // Words are no keys.
        await page.keyboard.type("not yet, y?")
        await page.keyboard.press("Enter")
      })
      yield* Console.sees(page, "Denied with words by you")
      yield* Console.sees(page, "touch second")
      yield* Console.settle(page)
      yield* act(async () => {
        await page.keyboard.press("e")
        await page.getByRole("textbox").fill("touch third")
        await page.locator(".changes .added").waitFor()
      })
      assert.include(yield* Console.words(page.locator(".changes")), "touch third")
      yield* act(() => page.getByRole("button", { name: "Allow as edited" }).click())
      // The edited call starts again from the top, and no rule allows it.
      const again = page.locator("article.card:not(.ended)", { hasText: "touch third" })
      yield* act(() => again.getByRole("button", { name: "Allow", exact: true }).click())
      yield* place.appears("workspace/third")
      assert.isFalse((yield* place.exists("workspace/first")) || (yield* place.exists("workspace/second")))
      const { body } = yield* call("/v1/sessions/one/audit")
      const decided = body.records.filter((record: { _tag: string }) => record._tag === "Decided")
      assert.isTrue(
        decided.some(
          ({ method, reason }: { method: string; reason: string }) =>
            method === "user_comment" && reason.includes("not yet, y?")
        )
      )
    })
  )

  it.scopedLive("allows always after a second press, and asks no more", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* commands(place, "touch made", "touch made")
      const { address, begin, call } = yield* Console.serving(place, ["--model", model])
      const { page } = yield* browser.open(address)
      yield* begin("one")
      yield* Console.cards(page, 1)
      yield* Console.settle(page)
      yield* act(() => page.keyboard.press("a"))
      yield* Console.sees(page, "Yes, always")
      assert.isFalse(yield* place.exists("workspace/made"))
      yield* act(() => page.keyboard.press("a"))
      yield* place.appears("workspace/made")
      yield* Served.until(call("/v1/sessions/one"), ({ body }) => body.agents[0].isIdle === true)
      const { body } = yield* call("/v1/sessions/one/audit")
      const methods = body.records.flatMap(({ method }: { method?: string }) => method ?? [])
      assert.deepStrictEqual(methods, ["user_approved", "session_whitelist"])
    })
  )

  it.scopedLive("answers marked calls of one tool one by one, and no other", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address, begin, call } = yield* Console.serving(place, ["--model", yield* commands(place, "true")])
      const { page } = yield* browser.open(address)
      for (const id of ["one", "two", "three"]) {
        yield* begin(id)
        yield* Served.until(call(`/v1/sessions/${id}`), ({ body }) => body.open.length === 1)
      }
      yield* Console.cards(page, 3)
      yield* Console.settle(page)
      yield* act(async () => {
        // All keys come before the page is painted again.
        await page.evaluate(`(async () => {
          for (const key of ["x", "j", "j", "x"]) {
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))
            for (let turn = 0; turn < 20; turn++) await undefined
          }
        })()`)
      })
      const bar = page.getByRole("region", { name: "Marked questions" })
      assert.include(yield* Console.words(bar), "2 marked: run_command")
      yield* act(() => bar.getByRole("button", { name: "Deny each" }).click())
      yield* Console.cards(page, 1)
      yield* Served.until(call("/v1/requests"), ({ body }) => body.requests.length === 1)
      const outcomes = Effect.forEach(["one", "two", "three"], (id) =>
        Effect.map(call(`/v1/sessions/${id}/audit`), ({ body }) =>
          body.records.flatMap(({ outcome }: { outcome?: string }) => outcome ?? []).join()
        )
      )
      yield* Served.until(outcomes, (all) => all.join(" ") === "denied  denied")
    })
  )

  it.scopedLive("answers nothing with a key that was meant for the card before", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address, begin, call } = yield* Console.serving(place, ["--model", yield* commands(place, "true")])
      const { page } = yield* browser.open(address)
      for (const id of ["one", "two"]) yield* begin(id)
      yield* Console.cards(page, 2)
      yield* Console.settle(page)
      yield* act(async () => {
        // As soon as the focus moves to the other card, however slow the machine is.
        await page.evaluate(`{
          const observer = new MutationObserver(() => {
            if (document.querySelector("article.card.ended") === null) return
            if (document.body.textContent.includes("The list has just moved")) return observer.disconnect()
            for (const key of ["y", "n", "a", "a", "y"])
              document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))
          })
          observer.observe(document.body, { attributes: true, childList: true, subtree: true })
        }`)
        await page.keyboard.press("y")
      })
      yield* Console.sees(page, /The list has just moved/)
      assert.lengthOf((yield* call("/v1/requests")).body.requests, 1)
      yield* Console.settle(page)
      yield* act(() => page.keyboard.press("n"))
      yield* Served.until(call("/v1/requests"), ({ body }) => body.requests.length === 0)
    })
  )

  it.scopedLive("takes no single key when they are switched off, also in the next visit", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address, begin, call } = yield* Console.serving(place, ["--model", yield* commands(place, "true")])
      const { page } = yield* browser.open(address)
      yield* begin("one")
      yield* Console.cards(page, 1)
      yield* act(() => page.getByLabel("Single keys").uncheck())
      for (let visit = 0; visit < 2; visit++) {
        yield* Console.settle(page)
        yield* act(async () => {
          await page.locator("article.card").focus()
          for (const key of ["y", "n", "a", "a"]) await page.keyboard.press(key)
        })
        assert.lengthOf((yield* call("/v1/requests")).body.requests, 1)
        yield* act(() => page.reload())
        yield* Console.cards(page, 1)
      }
      yield* act(() => page.getByRole("button", { name: "Allow", exact: true }).click())
      yield* Console.sees(page, "Allowed by you")
    })
  )

  it.scopedLive("names the winner to the tab that lost", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address, begin, call } = yield* Console.serving(place, [
        "--model",
        yield* commands(place, "true", "true")
      ])
      const first = yield* browser.open(address)
      yield* begin("one")
      yield* Console.cards(first.page, 1)
      // The second tab hears of nothing that happens.
      const second = yield* browser.open(address, {}, (page) => page.route("**/v1/events", (route) => route.abort()))
      yield* Console.cards(second.page, 1)
      yield* act(() => first.page.getByRole("button", { name: "Allow", exact: true }).click())
      yield* Console.sees(first.page, "Allowed by you")
      yield* act(() => second.page.getByRole("button", { name: "Deny", exact: true }).click())
      yield* Console.sees(second.page, /Your answer came too late: \S+ was first\./)
      // Both at once: one of them wins, and each tab ends with the same.
      yield* act(() => second.page.unroute("**/v1/events"))
      const next = yield* Served.until(call("/v1/requests"), ({ body }) => body.requests.length === 1)
      const id = next.body.requests[0].request.requestId
      const cards = [first, second].map(({ page }) => page.locator(`[data-request="${id}"]`))
      yield* act(() => Promise.all(cards.map((card) => card.waitFor())))
      // An answer that arrives before the other click takes its button away.
      let clicked = 0
      let both = () => {}
      const atOnce = new Promise<void>((resolve) => (both = resolve))
      for (const { page } of [first, second])
        yield* act(() =>
          page.route("**/answer", (route) => {
            if (++clicked === 2) both()
            return atOnce.then(() => route.continue())
          })
        )
      yield* act(() =>
        Promise.all(cards.map((card) => card.getByRole("button", { name: "Allow", exact: true }).click()))
      )
      const told = yield* act(() => Promise.all(cards.map((card) => card.locator(".outcome").innerText())))
      assert.isTrue(
        told.every((text) =>
          /^(?:Allowed by you|Answered by \S+: allow|Your answer came too late: \S+ was first\.)$/.test(text)
        ),
        told.join("; ")
      )
    })
  )

  it.scopedLive("comes back by itself after the server was killed, with the question open", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const args = ["--model", yield* commands(place, "touch made")]
      const scope = yield* Scope.make()
      const before = yield* Scope.extend(Console.serving(place, args), scope)
      const seen = yield* browser.open(before.address)
      const { page } = seen
      yield* before.begin("one")
      const card = yield* Console.cards(page, 1)
      const id = yield* act(() => card.getAttribute("data-request"))
      yield* before.program.signal("SIGKILL")
      yield* before.program.exit
      yield* Scope.close(scope, Exit.void)
      yield* Console.sees(page, /The server has ended or cannot be reached/)
      yield* act(() => page.getByRole("button", { name: "Allow", exact: true }).click())
      yield* Console.sees(page, /The server cannot be reached. Nothing was sent./)
      yield* Console.serving(place, args, new URL(before.url).port)
      yield* act(() => page.getByText(/The server has ended or cannot be reached/).waitFor({ state: "detached" }))
      assert.strictEqual(yield* act(() => page.locator("article.card").getAttribute("data-request")), id)
      // What the server that came back says about the card moves its buttons.
      yield* Console.settle(page)
      yield* act(() => page.getByRole("button", { name: "Allow", exact: true }).click())
      yield* Console.sees(page, "Allowed by you")
      yield* place.appears("workspace/made")
      Browser.isQuiet({ ...seen, errors: seen.errors.filter((text) => !/ERR_|net::/.test(text)) })
    })
  )

  it.scopedLive("shows the votes and the missing people", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { name } = yield* Effect.sync(() => ({ name: process.env["USER"] ?? "root" }))
      yield* place.write("config/permissions.json", {
        approvals: [{ tools: ["run_command"], quorum: 2, roles: ["ops"] }],
        roles: { ops: ["ada", "grace", name, "root"] }
      })
      const { address, begin } = yield* Console.serving(place, ["--model", yield* commands(place, "true")])
      const { page } = yield* browser.open(address)
      yield* begin("one")
      yield* Console.sees(page, "Several people decide")
      const votes = page.locator("dl.votes")
      assert.match(yield* Console.words(votes), /nobody yet[^]*2 more of: ops/)
      yield* act(() => page.getByRole("button", { name: "Vote to allow" }).click())
      yield* Console.sees(page, /: allow$/)
      assert.match(yield* Console.words(votes), /: allow[^]*1 more of: ops/)
      yield* Console.cards(page, 1)
    })
  )

  it.scopedLive("says where the token is if it is missing or wrong, and takes the right one", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address, begin, token, url } = yield* Console.serving(place, ["--model", yield* commands(place, "true")])
      yield* begin("one")
      for (const wrong of [url, `${url}/#token=${"x".repeat(32)}`, `${url}/#/session/one`]) {
        const seen = yield* browser.open(wrong)
        const { page } = seen
        yield* Console.sees(page, new RegExp(place.path("config", "serve-token").replace(/[^\w/]/g, ".")))
        assert.notInclude(page.url(), "token")
        yield* act(async () => {
          await page.getByLabel(/^Token/).fill("also wrong")
          await page.getByRole("button", { name: "Open" }).click()
          await page.getByLabel(/^Token/).fill(wrong === url ? address : token)
          await page.getByRole("button", { name: "Open" }).click()
        })
        yield* act(() => page.locator("nav.side").waitFor())
        assert.notInclude(page.url(), token)
        assert.notInclude(yield* act(() => page.content()), token)
        Browser.isQuiet(seen)
      }
    })
  )
})
