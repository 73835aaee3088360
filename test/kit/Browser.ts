/** Chromium, driven from outside: pages with what they said and sent. Tests that need it are skipped if there is none. */
import { afterAll, assert, beforeAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core"
import * as Chromium from "./Chromium.js"

export { isWanted } from "./Chromium.js"

/** A page, and what it did that a person does not see. */
export interface Seen {
  readonly page: Page
  /** Errors of scripts and of the policy, without answers that say no. */
  readonly errors: ReadonlyArray<string>
  /** Addresses of other servers that it asked. */
  readonly outside: ReadonlyArray<string>
}

/** One browser for the tests of a file. */
export const forFile = () => {
  let browser: Browser | undefined
  beforeAll(async () => {
    if (Chromium.isWanted) browser = await chromium.launch({ executablePath: Chromium.file, args: ["--no-sandbox"] })
  })
  afterAll(async () => browser?.close())
  return {
    /** A page of a new profile, until the scope closes. */
    open: (
      address: string,
      options: BrowserContextOptions = {},
      before: (page: Page) => Promise<unknown> = async () => {}
    ): Effect.Effect<Seen, never, Scope.Scope> =>
      Effect.gen(function* () {
        const context = yield* Effect.acquireRelease(
          Effect.promise(async () => {
            if (browser === undefined) throw new Error("There is no browser.")
            return browser.newContext({ viewport: { width: 1280, height: 820 }, ...options })
          }),
          (context) => Effect.promise(() => context.close())
        )
        return yield* Effect.promise(async () => {
          const page = await context.newPage()
          page.setDefaultTimeout(30_000)
          const errors: Array<string> = []
          const outside: Array<string> = []
          page.on("console", (message) => {
            if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
              errors.push(message.text())
          })
          page.on("pageerror", (error) => errors.push(String(error)))
          page.on("dialog", (dialog) => {
            errors.push(`a dialog: ${dialog.message()}`)
            void dialog.dismiss()
          })
          page.on("request", (request) => {
            const { origin } = new URL(address)
            if (!request.url().startsWith(`${origin}/`) && !/^(?:data|blob):/.test(request.url()))
              outside.push(request.url())
          })
          await before(page)
          await page.goto(address)
          return { page, errors, outside }
        })
      })
  }
}

/** What axe finds wrong with the page as it is. */
export const violations = (page: Page): Effect.Effect<ReadonlyArray<string>> =>
  Effect.promise(async () => {
    await page.evaluate(axe)
    const found: ReadonlyArray<{ id: string; nodes: ReadonlyArray<{ html: string; failureSummary?: string }> }> =
      await page.evaluate("axe.run().then(({ violations }) => violations)")
    return found.flatMap(({ id, nodes }) =>
      nodes.map(({ failureSummary, html }) => `${id}: ${html.slice(0, 200)} ${failureSummary ?? ""}`)
    )
  })

/** Nothing went wrong in the page, and it asked no other server. */
export const isQuiet = ({ errors, outside }: Seen): void => {
  assert.deepStrictEqual({ errors, outside }, { errors: [], outside: [] })
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
