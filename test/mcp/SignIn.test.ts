/** Signing in to tool servers by OAuth: as a library, and by the built program. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"
import * as Id from "../../src/core/Id.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import { InteractionCancelled } from "../../src/interaction/InteractionError.js"
import * as McpServer from "../../src/mcp/McpServer.js"
import type { Credentials } from "../../src/tool/ServerSettings.js"
import type * as TestInteractor from "../../src/testing/TestInteractor.js"
import { allowAll } from "../kit/agents.js"
import * as OAuthServer from "../kit/OAuthServer.js"
import * as Program from "../kit/Program.js"
import * as ServerKit from "../kit/ServerKit.js"

const live = (title: string, test: () => Effect.Effect<void, unknown, never>) =>
  it.live(title, () => test(), { timeout: 60_000 })

/** Credentials in memory. */
const memory = (): Credentials => {
  let text: string | undefined
  return { read: () => text, write: (next: string | undefined) => void (text = next) }
}

/** The address of the page in a question. */
const pageIn = (prompt: string): string => prompt.split("\n").find((line) => line.startsWith("http")) ?? ""

type Answering = (prompt: string, times: number) => Effect.Effect<string, InteractionCancelled>

/** A person at the question; what they enter is the answer. */
const person = (answering: Answering) => {
  let times = 0
  const { declines } = Interactor
  return Interactor.make({
    id: "test",
    handlers: {
      Approve: declines,
      grantStageTool: declines,
      approveSubagentEnvelope: declines,
      Clarify: declines,
      Ask: ({ interaction }) => answering(interaction.prompt, times++),
      Select: declines,
      Confirm: declines,
      Elicit: declines,
      "Auth.DeviceCode": declines,
      "Auth.Password": declines
    }
  })
}

const signIn = (
  server: OAuthServer.OAuthServer,
  answering: Answering,
  { credentials = memory(), ...more }: Partial<McpServer.Options> = {},
  settings: Partial<McpServer.Settings> = {}
) =>
  McpServer.signIn({ name: "guarded", url: server.url, ...settings }, { credentials, ...more }).pipe(
    Effect.provideService(Interactor.Interactor, person(answering)),
    Effect.either,
    Effect.map((result) => ({ result, credentials }))
  )

/** Opens the page, and lets the browser return to Assent. */
const browses =
  (server: OAuthServer.OAuthServer, change?: (back: URL) => void): Answering =>
  (prompt) =>
    Effect.zipRight(
      Effect.promise(async () => fetch(await server.visit(pageIn(prompt), change))),
      Effect.never
    )

const call = { tools: [{ name: "mcp__guarded__whoami", params: {} }] }

const called = (server: McpServer.McpServer, person: TestInteractor.Script = () => "n") =>
  Effect.map(
    ServerKit.played(server, { script: [call, { text: "done" }], policy: allowAll, person }),
    ({ results }) => results
  )

/** At the question of a session: opens its page, and lets the browser return. */
const opens =
  (server: OAuthServer.OAuthServer, prompts: Array<string> = []): TestInteractor.Script =>
  ({ interaction }) => {
    if (interaction._tag !== "Confirm") return "n"
    prompts.push(interaction.prompt)
    void server.visit(pageIn(interaction.prompt)).then((back) => fetch(back))
    return "y"
  }

const answer = 'succeeded <foreign-text source="mcp:guarded">\nyou, whoami\n</foreign-text>'

const use = (server: OAuthServer.OAuthServer, credentials: Credentials, more: McpServer.Options = {}) =>
  ServerKit.started({ name: "guarded", url: server.url }, { credentials, ...more })

const within = <E>(test: Effect.Effect<void, E, Effect.Effect.Context<ReturnType<typeof use>>>) =>
  test.pipe(Effect.scoped, Effect.provide(NodeContext.layer))

describe("a server that wants a sign-in", () => {
  live("says so, and nobody registers there, until a person signs in", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const { state } = yield* use(server, memory())
        assert.deepStrictEqual(state(), {
          server: "guarded",
          state: "failed",
          reason: "wants you to sign in. Run: assent mcp login guarded"
        })
        assert.notInclude(server.log.join("\n"), "/register")
      })
    )
  )

  live("is used after the browser returned", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const prompts: Array<string> = []
        const secrets: Array<string> = []
        const declareSecret = (secret: Redacted.Redacted) => void secrets.push(Redacted.value(secret))
        const { credentials, result } = yield* signIn(
          server,
          (prompt, times) => {
            prompts.push(prompt)
            return browses(server)(prompt, times)
          },
          { declareSecret }
        )
        assert.deepStrictEqual(result, Either.right(true))
        const [first = ""] = prompts
        const page = new URL(pageIn(first))
        assert.include(first, `The server guarded wants you to sign in. Open this page of ${page.host}:`)
        assert.isAtLeast((page.searchParams.get("state") ?? "").length, 32)
        assert.strictEqual(page.searchParams.get("code_challenge_method"), "S256")
        assert.match(page.searchParams.get("redirect_uri") ?? "", /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
        assert.deepStrictEqual(yield* called(yield* use(server, credentials, { declareSecret })), [answer])
        assert.include(secrets.join(" "), "access-secret")
        assert.include(secrets.join(" "), "refresh-secret")
        // The address of the sign-in is closed.
        const gone = yield* Effect.promise(() =>
          fetch(page.searchParams.get("redirect_uri") ?? "").catch(() => "closed")
        )
        assert.strictEqual(gone, "closed")
      })
    )
  )

  live("takes the address at which a browser on another machine ended", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const { credentials, result } = yield* signIn(server, (prompt) =>
          Effect.promise(() => server.visit(pageIn(prompt)))
        )
        assert.strictEqual(result._tag, "Right")
        assert.deepStrictEqual(yield* called(yield* use(server, credentials)), [answer])
      })
    )
  )

  live("renews its token during a session, and asks again for what cannot be renewed", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const { credentials } = yield* signIn(server, browses(server))
        const used = yield* use(server, credentials)
        const before = credentials.read()
        server.expire()
        assert.deepStrictEqual(yield* called(used), [answer])
        assert.notStrictEqual(credentials.read(), before)
        server.expire("all")
        const [failed = ""] = yield* called(used)
        assert.strictEqual(failed, "failed The server guarded was not signed in to: you said no.")
        assert.strictEqual(credentials.read(), undefined)
        const { state } = yield* use(server, credentials)
        assert.include(state().reason, "assent mcp login guarded")
      })
    )
  )

  live("asks within the call when its tokens are over, and the call goes on once the browser returned", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const { credentials } = yield* signIn(server, browses(server))
        const used = yield* use(server, credentials)
        server.expire("all")
        const prompts: Array<string> = []
        assert.deepStrictEqual(yield* called(used, opens(server, prompts)), [answer])
        const page = new URL(pageIn(prompts[0] ?? ""))
        assert.deepStrictEqual(prompts, [
          [
            `The server guarded wants you to sign in. Open this page of ${page.host} yourself:`,
            page.href,
            "Assent waits for your browser to return. Say no to do without."
          ].join("\n")
        ])
        assert.deepStrictEqual(yield* called(used), [answer])
      })
    )
  )

  live("asks once for two calls that need it at once", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const { credentials } = yield* signIn(server, browses(server))
        const used = yield* use(server, credentials)
        server.expire("all")
        const prompts: Array<string> = []
        const { results } = yield* ServerKit.played(used, {
          script: [{ tools: [...call.tools, ...call.tools] }, { text: "done" }],
          policy: allowAll,
          person: opens(server, prompts)
        })
        assert.deepStrictEqual(results, [answer, answer])
        assert.lengthOf(prompts, 1)
      })
    )
  )

  live("asks for a wider scope when a call needs one, and keeps what it has", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make({ wider: "write" })
        const { credentials } = yield* signIn(server, browses(server))
        const used = yield* use(server, credentials)
        const prompts: Array<string> = []
        assert.deepStrictEqual(yield* called(used, opens(server, prompts)), [answer])
        assert.lengthOf(prompts, 1)
        assert.include(prompts[0], "The server guarded wants you to sign in for more: write.")
        assert.strictEqual(new URL(pageIn(prompts[0] ?? "")).searchParams.get("scope"), "basic write")
        // A person who says no is not asked again within the call, and nothing is called.
        const narrow = yield* signIn(server, browses(server))
        assert.deepStrictEqual(yield* called(yield* use(server, narrow.credentials)), [
          "failed The server guarded was not signed in to: you said no."
        ])
      })
    )
  )

  live("stops asking for scopes that a sign-in does not bring", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make({ wider: "two words" })
        const { credentials } = yield* signIn(server, browses(server))
        const prompts: Array<string> = []
        assert.deepStrictEqual(yield* called(yield* use(server, credentials), opens(server, prompts)), [
          "failed The server guarded wants you to sign in for more. Run: assent mcp login guarded"
        ])
        assert.lengthOf(prompts, 2)
      })
    )
  )

  live("offers a tool that signs in, if nobody has yet, and its own tools come with the next model call", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const credentials = memory()
        const used = yield* use(server, credentials)
        assert.deepStrictEqual(
          used.entries().map(({ name }) => name),
          ["mcp__guarded__sign_in"]
        )
        const { events, results } = yield* ServerKit.played(used, {
          script: [{ tools: [{ name: "mcp__guarded__sign_in", params: {} }] }, call, { text: "done" }],
          policy: allowAll,
          person: opens(server)
        })
        assert.deepStrictEqual(results, [
          "succeeded The person has signed in to the server guarded. Its tools come with the next model call.",
          answer
        ])
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "McpServerChanged" ? [event.state] : [])),
          ["failed", "reconnecting", "ready"]
        )
        assert.deepStrictEqual(
          used.entries().map(({ name }) => name),
          ["mcp__guarded__whoami"]
        )
      })
    )
  )

  live("stays without its tools if the person says no, and may ask again", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const used = yield* use(server, memory())
        const play = (person: TestInteractor.Script) =>
          Effect.map(
            ServerKit.played(used, {
              script: [{ tools: [{ name: "mcp__guarded__sign_in", params: {} }] }, { text: "done" }],
              person
            }),
            ({ results }) => results
          )
        assert.deepStrictEqual(yield* play(() => "n"), ["failed The server guarded was not signed in to: you said no."])
        assert.strictEqual(used.state().state, "failed")
        assert.match((yield* play(opens(server)))[0] ?? "", /^succeeded/)
        assert.strictEqual(used.state().state, "ready")
      })
    )
  )

  live("does not lose tokens that another process renewed", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const { credentials } = yield* signIn(server, browses(server))
        const one = yield* use(server, credentials)
        const two = yield* use(server, credentials)
        server.expire()
        const [first, second] = yield* Effect.all([called(one), called(two)], { concurrency: 2 })
        assert.include([...first, ...second], answer)
        assert.notStrictEqual(credentials.read(), undefined)
        assert.deepStrictEqual(yield* called(yield* use(server, credentials)), [answer])
      })
    )
  )

  const refusals: ReadonlyArray<readonly [what: string, change: (back: URL) => void, reason: string]> = [
    [
      "with another state",
      (back) => back.searchParams.set("state", "guessed"),
      "The state is not that of this sign-in"
    ],
    ["without a state", (back) => back.searchParams.delete("state"), "The state is not that of this sign-in"],
    ["without a code", (back) => back.searchParams.delete("code"), "neither a code nor an error"]
  ]
  for (const [what, change, reason] of refusals) {
    live(`refuses a return ${what}, and waits for the right one`, () =>
      within(
        Effect.gen(function* () {
          const server = yield* OAuthServer.make()
          let body = ""
          const { result } = yield* signIn(server, (prompt) =>
            Effect.zipRight(
              Effect.promise(async () => {
                const wrong = await fetch(await server.visit(pageIn(prompt), change))
                body = `${wrong.status} ${await wrong.text()}`
                await fetch(await server.visit(pageIn(prompt)))
              }),
              Effect.never
            )
          )
          assert.include(body, "400")
          assert.include(body, reason)
          assert.strictEqual(result._tag, "Right")
        })
      )
    )

    live(`refuses an entered address ${what}, and asks again with the reason`, () =>
      within(
        Effect.gen(function* () {
          const server = yield* OAuthServer.make()
          const prompts: Array<string> = []
          const { credentials, result } = yield* signIn(server, (prompt) => {
            prompts.push(prompt)
            return Effect.promise(() => server.visit(pageIn(prompt), change))
          })
          assert.strictEqual(result._tag, "Left")
          assert.include(result._tag === "Left" ? result.left : "", reason)
          assert.strictEqual(prompts.length, 6)
          assert.include(prompts[1], reason)
          assert.strictEqual(credentials.read(), undefined)
        })
      )
    )
  }

  live("ends the sign-in if the issuer is another one, the page says no, or the person cancels", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const refusing = yield* OAuthServer.make({ refuses: true })
        const ends = yield* Effect.all([
          signIn(
            server,
            browses(server, (back) => back.searchParams.set("iss", "https://evil.example.com"))
          ),
          signIn(
            server,
            browses(server, (back) => back.searchParams.set("code", "guessed"))
          ),
          signIn(refusing, browses(refusing)),
          signIn(server, () => Effect.fail(new InteractionCancelled({ requestId: Id.RequestId.make("1") })))
        ])
        assert.deepStrictEqual(
          ends.map(({ credentials, result }) => [result._tag, credentials.read()]),
          ends.map(() => ["Left", undefined])
        )
        const sentences = ends.map(({ result }) => (result._tag === "Left" ? result.left : ""))
        assert.include(sentences[2], "access_denied")
        assert.strictEqual(sentences[3], "The server guarded was not signed in to: you cancelled it.")
      })
    )
  )

  live("gets a client that the person registered, and headers go to the server alone", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make({ apart: true, client: { id: "mine", secret: "client-secret" } })
        const settings = { auth: { client_id: "mine", client_secret: "client-secret" }, headers: { "X-Key": "key" } }
        const { result } = yield* signIn(server, browses(server), {}, settings)
        assert.strictEqual(result._tag, "Right")
        const kept = server.log.filter((line) => line.includes("x-key"))
        assert.isNotEmpty(kept)
        assert.deepStrictEqual(
          kept.filter((line) => !line.includes("/mcp")),
          []
        )
        assert.include(server.log.join("\n"), "POST /token")
      })
    )
  )

  live("does not ask for a program, for a server that wants none, or beside a header that signs in", () =>
    within(
      Effect.gen(function* () {
        const server = yield* OAuthServer.make()
        const nobody: Answering = () => Effect.die("nobody is asked")
        const header = yield* signIn(server, nobody, {}, { headers: { authorization: "Bearer x" } })
        const program = yield* McpServer.signIn(ServerKit.legacySettings(), { credentials: memory() }).pipe(
          Effect.provideService(Interactor.Interactor, person(nobody)),
          Effect.flip
        )
        assert.strictEqual(
          header.result._tag === "Left" ? header.result.left : "",
          'The server guarded signs in by the header "Authorization" of its settings.'
        )
        assert.strictEqual(program, "The server legacy is a program, and programs want no sign-in.")
      })
    )
  )
})

describe("assent mcp login", () => {
  const configured = (place: Program.Place, url: string) =>
    place.write("config/config.json", { mcp_servers: { guarded: { url } } })

  live("signs in, stores tokens for the owner alone, shows no secret, and logout deletes them", () =>
    Effect.gen(function* () {
      const server = yield* OAuthServer.make()
      const place = yield* Program.place
      yield* configured(place, server.url)
      const before = yield* place.run(["mcp", "check", "guarded"])
      assert.deepInclude(before, { code: 1 })
      assert.include(before.stderr, "wants you to sign in. Run: assent mcp login guarded")
      const login = yield* place.start(["mcp", "login", "guarded"])
      const page = yield* login.errorLine((line) => line.startsWith("http"))
      yield* Effect.promise(async () => fetch(await server.visit(page)))
      const { code, stderr, stdout } = yield* login.exit
      assert.strictEqual(code, 0)
      assert.include(stderr, "You are signed in to guarded.")
      const file = place.path("config/server-tokens.json")
      assert.strictEqual(fs.statSync(file).mode & 0o777, 0o600)
      assert.include(fs.readFileSync(file, "utf8"), "access-secret")
      assert.notInclude(stderr + stdout, "secret")
      const after = yield* place.run(["mcp", "check", "guarded"])
      assert.deepInclude(after, { code: 0 })
      assert.include(after.stdout, "mcp__guarded__whoami")
      const logout = yield* place.run(["mcp", "logout", "guarded"])
      assert.deepInclude(logout, { code: 0, stderr: "assent: You are signed out of guarded.\n" })
      assert.notInclude(fs.readFileSync(file, "utf8"), "secret")
      const again = yield* place.run(["mcp", "logout", "guarded"])
      assert.deepInclude(again, { code: 0, stderr: "assent: You are not signed in to guarded.\n" })
    }).pipe(Effect.scoped)
  )

  live("takes the address from standard input, and refuses a wrong one", () =>
    Effect.gen(function* () {
      const server = yield* OAuthServer.make()
      const place = yield* Program.place
      yield* configured(place, server.url)
      const login = yield* place.start(["mcp", "login", "guarded"])
      const page = yield* login.errorLine((line) => line.startsWith("http"))
      const back = yield* Effect.promise(() => server.visit(page))
      yield* login.write(`${back.replace(/state=[^&]*/, "state=guessed")}\n`)
      yield* login.errorLine((line) => line.startsWith("The state is not that of this sign-in"))
      yield* login.write(`${back}\n`)
      assert.deepInclude(yield* login.exit, { code: 0 })
    }).pipe(Effect.scoped)
  )

  live("gives a workspace's server of the same name, but of another address, nothing", () =>
    Effect.gen(function* () {
      const server = yield* OAuthServer.make()
      const evil = yield* OAuthServer.make()
      const place = yield* Program.place
      yield* configured(place, server.url)
      const login = yield* place.start(["mcp", "login", "guarded"])
      const page = yield* login.errorLine((line) => line.startsWith("http"))
      yield* Effect.promise(async () => fetch(await server.visit(page)))
      assert.deepInclude(yield* login.exit, { code: 0 })
      yield* place.write("workspace/.assent/config.json", { mcp_servers: { guarded: { url: evil.url } } })
      const check = yield* place.run(["mcp", "check", "guarded", "--trust"])
      assert.deepInclude(check, { code: 1 })
      assert.include(check.stderr, "wants you to sign in")
    }).pipe(Effect.scoped)
  )
})
