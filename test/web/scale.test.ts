/** Many questions and long turns: how much of them is in the page. The time of scripts has room for a machine with other work. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Page } from "playwright-core"
import * as Interaction from "../../src/interaction/Interaction.js"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import * as Served from "../kit/Served.js"

const { act } = Console

/** Counts the milliseconds of scripts from now on. */
const scripting = (page: Page) =>
  act(async () => {
    const session = await page.context().newCDPSession(page)
    await session.send("Performance.enable")
    const now = async () => {
      const { metrics } = await session.send("Performance.getMetrics")
      return 1_000 * (metrics.find(({ name }) => name === "ScriptDuration")?.value ?? 0)
    }
    const before = await now()
    return act(async () => (await now()) - before)
  })

describe.skipIf(!Browser.isWanted)("at scale the page", () => {
  const browser = Browser.forFile()

  it.scopedLive("has at most 60 cards of 1,000 open questions, and reaches each of them", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "done" }), { web: Console.built })
      yield* served.call("/v1/sessions", { id: "one" })
      const count = 1_000
      for (let at = 0; at < count; at++) {
        const prompt = `Question ${at}`
        yield* Console.ask(
          served,
          "one",
          at % 3 === 0
            ? new Interaction.Ask({ prompt })
            : at % 3 === 1
              ? new Interaction.Confirm({ prompt, default: false })
              : new Interaction.Select({ prompt, options: ["red", "green", "blue"] })
        )
      }
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`)
      yield* Console.isCount(page, count)
      yield* Console.sees(page, "Question 0")
      let most = 0
      yield* act(async () => {
        const list = page.locator(".virtual")
        await list.hover()
        const isAtEnd = () =>
          list.evaluate(({ clientHeight, scrollHeight, scrollTop }) => scrollTop + clientHeight > scrollHeight - 2)
        while (!(await isAtEnd())) {
          await page.mouse.wheel(0, 2_400)
          await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
          most = Math.max(most, await page.locator("article.card").count())
        }
      })
      yield* Console.sees(page, `Question ${count - 1}`)
      assert.isAtMost(most, 60)
      // One leaves, and the others move up.
      yield* act(() => page.locator(".virtual").evaluate((element) => (element.scrollTop = 0)))
      yield* act(() => page.locator("article.card").first().getByRole("button", { name: "Cancel" }).click())
      yield* Console.isCount(page, count - 1)
    })
  )

  it.scopedLive("shows a turn of 10,000 events in little of its time", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, place.script({ text: "done" }), { web: Console.built })
      yield* served.call("/v1/sessions", { id: "one" })
      const common = { at: 1_795_000_000_000, sessionId: "one", agent: "main", correlationId: "turn_1" }
      const events: Array<object> = [
        { _tag: "AgentCreated", depth: 0, model: "m" },
        { _tag: "TurnStarted", input: "go" }
      ]
      for (let at = 0; events.length < 9_997; at++) {
        const toolCallId = `call_${at}`
        const tool = "run_command"
        events.push({ _tag: "ModelCallStarted", model: "m", step: at }, { _tag: "BlockStarted", block: "text" })
        for (let piece = 0; piece < 12; piece++)
          events.push({ _tag: "TextDelta", text: `Some **words** of step ${at}. ` })
        events.push(
          { _tag: "BlockEnded", block: "text" },
          { _tag: "ToolCallProposed", toolCallId, tool, summary: `echo ${at}`, arguments: { command: `echo ${at}` } },
          { _tag: "ToolCallStarted", toolCallId, tool, summary: `echo ${at}` },
          { _tag: "ToolOutput", toolCallId, stream: "stdout", text: `${at}\n` },
          { _tag: "ToolCallEnded", toolCallId, tool, outcome: "succeeded", summary: "1 line", result: `${at}\n` }
        )
      }
      events.push(
        { _tag: "BlockStarted", block: "text" },
        { _tag: "TextDelta", text: "The end." },
        { _tag: "TurnEnded", reason: "completed", steps: 1 }
      )
      const body = events
        .map((event, at) => `data: ${JSON.stringify({ ...common, ...event })}\nid: ${at + 1}\n\n`)
        .join("")
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`, {}, (page) =>
        page.route("**/v1/sessions/one/events", (route) => route.fulfill({ contentType: "text/event-stream", body }))
      )
      yield* Console.sees(page, "Nothing waits for you.")
      const elapsed = yield* scripting(page)
      yield* act(() => page.evaluate(`location.hash = "#/session/one"`))
      yield* Console.sees(page, "The end.")
      const took = yield* elapsed
      const rows = yield* act(() => page.locator(".transcript .row").count())
      assert.isAtMost(rows, 80)
      assert.isAtMost(took, 5_000)
    })
  )
})
