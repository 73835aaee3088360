/** Each view as everybody may use it: with a screen reader, by keyboard alone, on a phone, in the dark. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Page } from "playwright-core"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import { kinds, samples } from "../kit/InteractionSample.js"
import * as Served from "../kit/Served.js"

const { act } = Console

/** A session with a past, and questions of every kind. */
const lively = Effect.gen(function* () {
  const place = yield* Served.place
  const model = place.script(
    {
      text: "# First\n\nI **look** around: `ls`.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```ts\nconst a = 1\n```\n\n- [x] one\n- two",
      tools: [
        {
          name: "todo_write",
          params: {
            items: [
              { content: "Look", status: "completed" },
              { content: "Write", status: "in_progress" }
            ]
          }
        },
        { name: "list_files", params: { path: "." } }
      ]
    },
    { tools: [{ name: "write_file", params: { path: "a.txt", content: "one\ntwo\n" } }] },
    { text: "done" }
  )
  const served = yield* Served.serve(place, model, { web: Console.built })
  yield* Served.question(served, { id: "one" })
  yield* served.call("/v1/sessions", { id: "two" })
  for (const kind of kinds) yield* Console.ask(served, "two", samples[kind].interaction)
  yield* Served.until(served.call("/v1/requests"), ({ body }) => body.requests.length >= 8)
  return served
})

const views: ReadonlyArray<readonly [string, (page: Page) => Promise<unknown>]> = [
  ["", (page) => page.locator("article.card").first().waitFor()],
  ["session/one", (page) => page.getByText("waits for an answer").waitFor()],
  ["session/one/history", (page) => page.getByText("Verified.").waitFor()],
  ["session/one/policy", (page) => page.getByText(/^mode: ask/).waitFor()],
  ["sessions", (page) => page.locator("main .sessions li").first().waitFor()],
  ["new", (page) => page.getByLabel("What is to be done?").waitFor()]
]

describe.skipIf(!Browser.isWanted)("each view", () => {
  const browser = Browser.forFile()

  for (const [name, options] of [
    ["in the light", { colorScheme: "light" }],
    ["in the dark", { colorScheme: "dark" }],
    ["on a phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
    [
      "on a phone in the dark",
      { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
    ]
  ] as const) {
    it.scopedLive(`violates no rule of axe ${name}`, () =>
      Effect.gen(function* () {
        const served = yield* lively
        const seen = yield* browser.open(`${served.url}/#token=${served.token}`, {
          ...options,
          reducedMotion: "reduce"
        })
        const { page } = seen
        const found: Array<string> = []
        for (const [path, isThere] of views) {
          yield* act(() => page.evaluate(`location.hash = "#/${path}"`))
          yield* act(() => isThere(page))
          found.push(...(yield* Browser.violations(page)).map((text) => `${path}: ${text}`))
          const { inner, outer } = yield* act(() =>
            page.evaluate<{ inner: number; outer: number }>(
              "({ inner: document.documentElement.scrollWidth, outer: document.documentElement.clientWidth })"
            )
          )
          assert.isAtMost(inner, outer, `${path} is wider than the window`)
        }
        yield* act(async () => {
          await page.evaluate(`location.hash = "#/"`)
          await page.getByRole("button", { name: "Edit", exact: true }).first().click()
          await page.getByRole("textbox").first().fill("other")
        })
        found.push(...(yield* Browser.violations(page)).map((text) => `editing: ${text}`))
        assert.deepStrictEqual(found, [])
        Browser.isQuiet(seen)
      })
    )
  }

  it.scopedLive("has a page without a token that violates no rule of axe", () =>
    Effect.gen(function* () {
      const served = yield* lively
      for (const colorScheme of ["light", "dark"] as const) {
        const { page } = yield* browser.open(served.url, { colorScheme })
        yield* Console.sees(page, /serve-token/)
        assert.deepStrictEqual(yield* Browser.violations(page), [])
      }
    })
  )

  it.scopedLive("has targets of at least 44 pixels on a phone, and denies on the left of what allows", () =>
    Effect.gen(function* () {
      const served = yield* lively
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`, {
        viewport: { width: 390, height: 844 },
        hasTouch: true,
        isMobile: true
      })
      for (const [path, isThere] of views) {
        yield* act(() => page.evaluate(`location.hash = "#/${path}"`))
        yield* act(() => isThere(page))
        const small = yield* act(() =>
          page.evaluate<ReadonlyArray<string>>(
            `[...document.querySelectorAll("button, select, textarea, input:not([type=checkbox]):not([type=radio]), nav a, label.choice, main .sessions a")]
              .filter((element) => element.checkVisibility())
              .map((element) => ({ element, box: element.getBoundingClientRect() }))
              .filter(({ box }) => box.height < 43.5 || box.width < 43.5)
              .map(({ element, box }) => element.outerHTML.slice(0, 100) + " " + box.width + " x " + box.height)`
          )
        )
        assert.deepStrictEqual(small, [], path)
      }
      yield* act(() => page.evaluate(`location.hash = "#/"`))
      const card = page.locator("article.card", { hasText: "Allow write_file?" })
      const boxOf = (name: string) =>
        act(() => card.getByRole("button", { name, exact: true }).boundingBox()).pipe(
          Effect.map((box) => box ?? { x: 0, y: 0, width: 0 })
        )
      const [deny, allow] = [yield* boxOf("Deny"), yield* boxOf("Allow")]
      assert.isBelow(deny.x + deny.width + 8, allow.x)
    })
  )

  it.scopedLive("can be used by keyboard alone, from the beginning of a session to its end", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place), { web: Console.built })
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`)
      yield* Console.sees(page, "Nothing waits for you.")
      /** Presses Tab until the element in focus has these words. */
      const tabTo = (name: RegExp) =>
        act(async () => {
          for (let presses = 0; presses < 60; presses++) {
            const words = await page.evaluate<string>(
              `(() => { const it = document.activeElement; return it.getAttribute("aria-label") ?? it.labels?.[0]?.innerText ?? it.innerText ?? "" })()`
            )
            if (name.test(words)) return
            await page.keyboard.press("Tab")
          }
          throw new Error(`Tab never reaches ${name}`)
        })
      const press = (...keys: ReadonlyArray<string>) =>
        act(async () => {
          for (const key of keys) await page.keyboard.press(key)
        })
      yield* tabTo(/^New session/)
      yield* press("Enter")
      yield* tabTo(/^What is to be done/)
      yield* act(() => page.keyboard.type("make a file"))
      yield* tabTo(/^Begin/)
      yield* press("Enter")
      yield* Console.sees(page, "Allow run_command?")
      yield* tabTo(/^Inbox/)
      yield* press("Enter")
      yield* Console.cards(page, 1)
      yield* press("?")
      yield* Console.sees(page, "Keys of the inbox")
      yield* press("y", "Escape")
      assert.lengthOf((yield* served.call("/v1/requests")).body.requests, 1)
      yield* Console.settle(page)
      yield* press("y")
      yield* Console.sees(page, "Allowed by you")
      yield* tabTo(/^make a file/)
      yield* press("Enter")
      yield* Console.sees(page, "done")
      yield* tabTo(/^History/)
      yield* press("Enter")
      yield* Console.sees(page, "granted")
      yield* tabTo(/^Policy/)
      yield* press("Enter")
      yield* tabTo(/^A tool and its arguments/)
      yield* act(() => page.keyboard.type("run_command git push"))
      yield* press("Enter")
      yield* Console.sees(page, /Asked about: the default is ask/)
    })
  )

  it.scopedLive("tells readers of the screen what arrives, politely", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place), { web: Console.built })
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`)
      yield* Console.sees(page, "Nothing waits for you.")
      yield* Served.question(served)
      yield* act(() =>
        page
          .locator('[aria-live="polite"]', { hasText: "New question of main: run_command" })
          .waitFor({ state: "attached" })
      )
      const icon = yield* act(() => page.locator('link[rel="icon"]').getAttribute("href"))
      assert.match(icon ?? "", /^data:image\/png/)
    })
  )
})
