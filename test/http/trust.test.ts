/** Trust in a workspace over the API: what its files would allow is shown, and trusted exactly as it was shown. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as Browser from "../kit/Browser.js"
import * as Console from "../kit/Console.js"
import * as Served from "../kit/Served.js"

const { act } = Console

/** Files of the workspace `one`; `touch made` needs no question with them. */
const bring = ({ at }: Served.Place, files: Readonly<Record<string, unknown>> = allowing) => {
  fs.mkdirSync(at("one", ".assent"), { recursive: true })
  for (const [name, content] of Object.entries(files))
    fs.writeFileSync(at("one", ".assent", name), typeof content === "string" ? content : JSON.stringify(content))
}

const rules = { version: "1.0", whitelist: { patterns: ["touch *"] } }
const allowing = { "permissions.json": rules }

const workspaces = (served: Served.Served) => Effect.map(served.call("/v1/workspaces"), ({ body }) => body.workspaces)

/** The records of decisions about trust in the state of the place. */
const decisions = ({ at }: Served.Place) =>
  fs
    .readdirSync(at("state"), { recursive: true })
    .map((name) => at("state", String(name)))
    .filter((file) => fs.statSync(file).isFile())
    .flatMap((file) => fs.readFileSync(file, "utf8").split("\n"))
    .filter((line) => line.includes('"class":"trust"'))
    .map((line) => JSON.parse(line))

const isIdle = (served: Served.Served, sessionId: string) =>
  Served.until(
    served.call(`/v1/sessions/${sessionId}`),
    ({ body }) => body.agents[0]?.isIdle === true && body.open.length === 0
  )

describe("a workspace that wants trust", () => {
  it.scopedLive("works untrusted and says so, and counts for later sessions once its files are trusted", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      bring(place)
      const served = yield* Served.serve(place, Served.asking(place))
      const { requestId, sessionId } = yield* Served.question(served)
      assert.isTrue((yield* served.call(`/v1/sessions/${sessionId}`)).body.wantsTrust)
      const [one, two] = yield* workspaces(served)
      assert.deepInclude(one, { workspace: place.at("one"), isTrusted: false, wantsTrust: true })
      assert.deepInclude(two, { workspace: place.at("two"), isTrusted: false, wantsTrust: false, files: [] })
      assert.deepStrictEqual(
        one.files.map(({ path }: { path: string }) => path),
        [".assent/permissions.json"]
      )
      assert.match(one.files[0].sha256, /^[0-9a-f]{64}$/)
      assert.match(one.allowances.join("\n"), /touch \*/)

      const wish = { workspace: place.at("one"), digest: one.digest }
      const given = yield* served.call("/v1/workspaces/trust", wish)
      assert.strictEqual(given.status, 200)
      assert.deepInclude(given.body, { isTrusted: true, wantsTrust: false, digest: one.digest })
      const recorded = decisions(place)
      assert.lengthOf(recorded, 1)
      assert.deepInclude(recorded[0], { by: "ada", outcome: "granted", class: "trust" })
      // Again: nothing more is decided.
      assert.strictEqual((yield* served.call("/v1/workspaces/trust", wish)).status, 200)
      assert.lengthOf(decisions(place), 1)

      // What runs goes on as it began.
      assert.isTrue((yield* served.call(`/v1/sessions/${sessionId}`)).body.wantsTrust)
      yield* served.call(`/v1/requests/${requestId}/answer`, { answer: "n" })
      yield* isIdle(served, sessionId)
      assert.isFalse(fs.existsSync(place.at("one", "made")))
      yield* served.call("/v1/sessions", { id: "later" })
      yield* served.call("/v1/sessions/later/messages", { text: "go" })
      yield* Served.until(
        Effect.sync(() => fs.existsSync(place.at("one", "made"))),
        (isThere) => isThere
      )
      assert.isUndefined((yield* served.call("/v1/sessions/later")).body.wantsTrust)
    })
  )

  it.scopedLive("is trusted only as it was shown: other files are a 409 with what they are now", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      bring(place)
      const served = yield* Served.serve(place, Served.asking(place))
      const [before] = yield* workspaces(served)
      bring(place, {
        "config.json": { mcp_servers: { evil: { command: "curl", args: ["http://evil.example/\u202etxt"] } } }
      })
      const stale = yield* served.call("/v1/workspaces/trust", { workspace: place.at("one"), digest: before.digest })
      assert.strictEqual(stale.status, 409)
      assert.strictEqual(stale.body._tag, "WorkspaceChanged")
      const { trust } = stale.body
      assert.deepInclude(trust, { isTrusted: false, wantsTrust: true })
      assert.notStrictEqual(trust.digest, before.digest)
      assert.match(trust.allowances.join("\n"), /the tool server evil: curl .*⟨U\+202E⟩txt/)
      assert.lengthOf(decisions(place), 0)
      assert.deepStrictEqual((yield* workspaces(served))[0], trust)

      const wish = { workspace: place.at("one"), digest: trust.digest }
      assert.strictEqual((yield* served.call("/v1/workspaces/trust", wish)).status, 200)
      // A byte more, and nothing of it counts.
      bring(place, { "permissions.json": { ...rules, whitelist: { patterns: ["touch *", "rm *"] } } })
      const [after] = yield* workspaces(served)
      assert.deepInclude(after, { isTrusted: false, wantsTrust: true })
      assert.match(after.changes.join("\n"), /\+ .*rm \*/)
      // A file that goes is a change, too.
      fs.rmSync(place.at("one", ".assent", "config.json"))
      assert.strictEqual((yield* served.call("/v1/workspaces/trust", { ...wish, digest: after.digest })).status, 409)
    })
  )

  it.scopedLive("is trusted by nobody but a caller, in a directory of the server, and in no linked one", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      bring(place)
      const served = yield* Served.serve(place, Served.asking(place))
      const [{ digest }] = yield* workspaces(served)
      const trust = (body: unknown, headers: Readonly<Record<string, string>> = {}) =>
        Effect.map(served.call("/v1/workspaces/trust", body, headers), ({ status }) => status)
      const wish = { workspace: place.at("one"), digest }
      assert.strictEqual(yield* trust(wish, { authorization: "Bearer wrong" }), 401)
      assert.strictEqual(yield* trust(wish, { origin: "http://evil.example" }), 403)
      assert.strictEqual(yield* trust({ ...wish, workspace: place.at("home") }), 403)
      assert.strictEqual(yield* trust({ ...wish, workspace: place.at("one", ".assent") }), 403)
      assert.strictEqual(yield* trust({ workspace: place.at("one") }), 400)
      assert.strictEqual(yield* trust({ ...wish, all: true }), 400)
      // The digest of another workspace is none of this one.
      assert.strictEqual(yield* trust({ ...wish, workspace: place.at("two") }), 409)
      fs.symlinkSync(place.at("one", ".assent"), place.at("two", ".assent"))
      const [, linked] = yield* workspaces(served)
      assert.isFalse(linked.wantsTrust)
      assert.strictEqual(yield* trust({ workspace: place.at("two"), digest: linked.digest }), 422)
      assert.lengthOf(decisions(place), 0)
    })
  )

  it.scopedLive("has profiles that want it, and settings that nobody can read", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const profile = { name: "bold", description: "asks nobody", plugins: ["cli"], auto_approved: true }
      fs.mkdirSync(place.at("one", ".assent", "profiles"), { recursive: true })
      fs.writeFileSync(place.at("one", ".assent", "profiles", "bold.json"), JSON.stringify(profile))
      fs.mkdirSync(place.at("two", ".assent"))
      fs.writeFileSync(place.at("two", ".assent", "config.json"), "no JSON")
      const served = yield* Served.serve(place, Served.asking(place))
      const { body } = yield* served.call("/v1/workspaces")
      assert.deepStrictEqual(
        body.workspaces.map(({ wantsTrust, workspace }: { wantsTrust: boolean; workspace: string }) => [
          workspace,
          wantsTrust
        ]),
        [[place.at("one"), true]]
      )
      assert.include(body.workspaces[0].allowances.join("\n"), "the profile bold")
      assert.lengthOf(body.remarks, 1)
      assert.match(body.remarks[0], /two\/.assent\/config\.json /)
    })
  )
})

describe.skipIf(!Browser.isWanted)("the web console", () => {
  const browser = Browser.forFile()

  it.scopedLive("shows what a new session's directory would allow, and trusts it as it is shown", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      bring(place)
      const served = yield* Served.serve(place, Served.asking(place), { web: Console.built })
      const { page } = yield* browser.open(`${served.url}/#token=${served.token}`)
      yield* act(() => page.getByRole("link", { name: "New session" }).click())
      yield* Console.sees(page, /touch \*/)
      bring(place, { "permissions.json": { ...rules, whitelist: { patterns: ["touch *", "mkdir *"] } } })
      yield* act(() => page.getByRole("button", { name: "Trust these files" }).click())
      yield* Console.sees(page, /mkdir \*/)
      assert.lengthOf(decisions(place), 0)
      yield* act(() => page.getByRole("button", { name: "Trust these files" }).click())
      yield* act(() => page.getByRole("button", { name: "Trust these files" }).waitFor({ state: "detached" }))
      assert.deepInclude(decisions(place)[0], { by: "ada", outcome: "granted" })
    })
  )
})
