/** The page of a session: words, calls, agents, and everything that steers it, over the built program. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import * as Program from "../kit/Program.js"
import * as Served from "../kit/Served.js"

const { act } = Console

describe.skipIf(!Browser.isWanted)("the page of a session", () => {
  const browser = Browser.forFile()

  it.scopedLive("begins a session, shows words, todos, changes and live output, and cancels one call", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        {
          text: "I **look** first.",
          tools: [{ name: "todo_write", params: { items: [{ content: "Look around", status: "in_progress" }] } }]
        },
        { tools: [{ name: "run_command", params: { command: "echo begun; exec sleep 1000" } }] },
        { tools: [{ name: "write_file", params: { path: "a.txt", content: "one\n" } }] },
        { tools: [{ name: "edit_file", params: { path: "a.txt", old_text: "one", new_text: "two" } }] },
        { text: "All is done." }
      )
      const { address, call } = yield* Console.serving(place, ["--model", model, "--mode", "allow"])
      const seen = yield* browser.open(address)
      const { page } = seen
      yield* act(async () => {
        await page.getByRole("link", { name: "New session" }).click()
        await page.getByLabel("What is to be done?").fill("make a file")
        await page.getByRole("button", { name: "Begin" }).click()
      })
      yield* Console.sees(page, "make a file")
      assert.strictEqual(yield* act(() => page.locator(".markdown strong").first().innerText()), "look")
      assert.include(yield* Console.words(page.locator("aside .todos")), "Look around")
      yield* act(() => page.locator("pre.output", { hasText: "begun" }).waitFor())
      yield* act(() => page.getByRole("button", { name: "Cancel call" }).click())
      yield* Console.sees(page, "All is done.")
      const edit = page.locator(".call-row", { hasText: "edit_file" })
      yield* act(() => edit.getByRole("button").click())
      assert.match(yield* Console.words(edit.locator(".diff")), /-\s+one[^]*\+\s+two/)
      const id = decodeURIComponent(new URL(page.url()).hash.replace("#/session/", ""))
      const { body } = yield* call(`/v1/sessions/${id}/turns`)
      assert.lengthOf(body.turns, 1)
      assert.strictEqual(yield* place.read("workspace/a.txt"), "two\n")
      Browser.isQuiet(seen)
    })
  )

  it.scopedLive("steers and queues words, changes the mode, and cancels the turn", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        { tools: [{ name: "run_command", params: { command: "exec sleep 1000" } }] },
        { text: "first" },
        { text: "second" },
        { text: "third" }
      )
      const { address, begin, call } = yield* Console.serving(place, ["--model", model, "--mode", "allow"])
      const { page } = yield* browser.open(address)
      yield* begin("one", "begin")
      yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
      yield* Console.sees(page, "Cancel call")
      yield* act(async () => {
        const words = page.getByLabel("Words for the agent")
        await words.fill("and later this")
        await page.getByRole("button", { name: "Queue" }).click()
        await page.getByText("Queued.").first().waitFor({ state: "attached" })
        await words.fill("look here, too")
        await words.press("Enter")
        await page.getByText("Sent to the running turn.").first().waitFor({ state: "attached" })
        await page.getByLabel("Mode", { exact: true }).selectOption("ask")
      })
      yield* Served.until(call("/v1/sessions/one"), ({ body }) => body.mode === "ask")
      yield* act(() => page.getByRole("button", { name: "Cancel turn" }).click())
      yield* Console.sees(page, /^Cancelled/)
      const { body } = yield* Served.until(call("/v1/sessions/one/turns"), ({ body }) =>
        body.turns.some(({ words }: { words: string }) => words === "and later this")
      )
      assert.isAtLeast(body.turns.length, 2)
      yield* Console.sees(page, "and later this")
    })
  )

  it.scopedLive("goes back to before a turn in a fork, with its words to be changed, and forks at its end", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script({ text: "one" }, { text: "two" }, { text: "three" }, { text: "four" })
      const { address, begin, call } = yield* Console.serving(place, ["--model", model])
      const { page } = yield* browser.open(address)
      yield* begin("one", "eins")
      yield* Served.until(call("/v1/sessions/one/turns"), ({ body }) => body.turns[0]?.ended !== undefined)
      yield* call("/v1/sessions/one/messages", { text: "zwei" })
      yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
      yield* act(() => page.getByRole("button", { name: "Fork here" }).nth(1).waitFor())
      yield* act(() => page.locator(".said.user", { hasText: "zwei" }).getByRole("button", { name: "Rewind" }).click())
      yield* act(() => page.waitForURL((url) => /#\/session\/ses_/.test(url.hash)))
      yield* Console.sees(page, "eins")
      const words = page.getByLabel("Words for the agent")
      assert.strictEqual(yield* act(() => words.inputValue()), "zwei")
      yield* act(async () => {
        await words.fill("drei")
        await words.press("Enter")
      })
      yield* Console.sees(page, "drei")
      const turns = yield* call("/v1/sessions/one/turns")
      assert.lengthOf(turns.body.turns, 2)
      yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
      yield* act(() => page.getByRole("button", { name: "Fork here" }).first().click())
      yield* act(() => page.waitForURL((url) => /#\/session\/ses_/.test(url.hash)))
      const { body } = yield* Served.until(call("/v1/sessions"), ({ body }) => body.sessions.length === 3)
      assert.isTrue(body.sessions.some(({ title }: { title: string }) => title === "eins"))
    })
  )

  it.scopedLive("shows who decided, the result, and that the record is whole; and how a rule decides", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const model = yield* place.script(
        { tools: [{ name: "run_command", params: { command: "exit 3" } }] },
        { text: "ok" }
      )
      const { address, begin } = yield* Console.serving(place, ["--model", model])
      const { page } = yield* browser.open(address)
      yield* begin("one")
      yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
      // The questions of a session are on its own page, too.
      yield* act(() => page.getByRole("button", { name: "Allow", exact: true }).click())
      yield* act(() => page.getByRole("link", { name: "History" }).click())
      yield* Console.sees(page, "Verified.")
      yield* Console.sees(page, /^Result: exit 3/)
      const decision = yield* Console.words(page.locator(".decisions li").first())
      assert.match(decision, /granted run_command by \S+[^]*user approved[^]*Result: exit 3/)
      yield* act(async () => {
        await page.getByRole("link", { name: "Policy" }).click()
        await page.getByLabel("A tool, a pattern or a command").fill("git status")
        await page.getByRole("button", { name: "Deny" }).click()
        await page.locator("pre.rules", { hasText: "git status" }).waitFor()
        await page.getByLabel("A tool and its arguments").fill("run_command git status")
        await page.getByRole("button", { name: "Check" }).click()
      })
      yield* Console.sees(page, /^deny/)
    })
  )

  it.scopedLive("says that a session is not there", () =>
    Effect.gen(function* () {
      const place = yield* Program.place
      const { address } = yield* Console.serving(place, ["--model", yield* place.script({ text: "ok" })])
      const { page } = yield* browser.open(address)
      yield* Console.sees(page, "Nothing waits for you.")
      yield* act(() => page.evaluate(`location.hash = "#/session/none"`))
      yield* Console.sees(page, 'There is no session "none".')
    })
  )
})
