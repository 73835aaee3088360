/** Where the command line keeps sessions: a PostgreSQL database by its address, and what is said where that is of no use. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as fc from "effect/FastCheck"
import { rmSync } from "node:fs"
import * as StoreAddress from "../../src/host/local/StoreAddress.js"
import * as Program from "../kit/Program.js"
import * as Pseudo from "../kit/Pseudo.js"

describe("the address of a database", () => {
  it("is told from a file, and shown without what is secret in it", () => {
    const shown: { readonly [text: string]: string } = {
      "sessions.db": "sessions.db",
      "./postgres/sessions.db": "./postgres/sessions.db",
      ":memory:": ":memory:",
      "postgres://db.example/agents": "postgres://db.example/agents",
      "postgres://ann:hidden@db.example:5433/agents": "postgres://ann@db.example:5433/agents",
      "postgresql://ann:hidden@/agents?host=%2Frun%2Fpg&sslmode=require":
        "postgresql://ann@/agents?host=%2Frun%2Fpg&sslmode=require",
      "postgres://ann@h/a?password=hidden&sslkey=hidden&options=-c%20search_path%3Dx":
        "postgres://ann@h/a?options=-c+search_path%3Dx",
      "postgres://ann:hidden%zz@h/a": "postgres://…",
      "postgres://ann:hidden@h:99999/a": "postgres://…",
      "postgres:ann:hidden": "postgres://…",
      "mysql://ann:hidden@h/a": "mysql://…"
    }
    for (const [text, expected] of Object.entries(shown)) assert.strictEqual(StoreAddress.shown(text), expected)
  })

  it("never shows a password, however it is written", () => {
    const password = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).map((text) => `Sec${text}ret`)
    fc.assert(
      fc.property(password, fc.constantFrom("postgres://", "postgresql://"), (password, scheme) => {
        const written = encodeURIComponent(password)
        for (const text of [`${scheme}ann:${written}@h/a`, `${scheme}ann@h/a?password=${written}`]) {
          const parsed = Either.getOrThrow(StoreAddress.parse(text))
          assert.strictEqual(String(parsed), `${scheme}ann@h/a`)
          assert.strictEqual(StoreAddress.passwordIn(text), password)
        }
      })
    )
  })
})

describe("assent with a store that is a database", () => {
  const secret = "Hidden-7261"
  const refused: { readonly [name: string]: readonly [address: string, says: RegExp] } = {
    "no server is there": [
      `postgres://ann:${secret}@127.0.0.1:1/agents`,
      /no server answers at that address\. Check that/
    ],
    "it cannot be read": [`postgres://ann:${secret}%zz@h/agents`, /cannot be read\. Give one such as postgres:/],
    "it is of another kind": [`mysql://ann:${secret}@h/agents`, /in a file or in PostgreSQL. Use a path, or postgres:/],
    "its kind is misspelt": [`postgress://ann:${secret}@h/agents`, /in a file or in PostgreSQL. Use a path/],
    "it has one slash": [`postgres:/ann:${secret}@h/agents`, /cannot be read\. Give one such as postgres:/]
  }
  for (const [name, [address, says]] of Object.entries(refused)) {
    it.scopedLive(`says so in a sentence where ${name}, without the password, and exits with 2`, () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        for (const result of [
          yield* at.call(["run", "list", "--store", address]),
          yield* at.call(["sessions"], { env: { ASSENT_STORE: address } })
        ]) {
          assert.strictEqual(result.code, 2, result.stderr)
          assert.match(result.stderr, says)
          assert.notInclude(result.stdout + result.stderr, secret)
        }
      })
    )
  }

  it.scopedLive("is refused if it is a link to a file that is not there, and none is made", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.link(at.path("gone.db"), "dangling.db")
      yield* at.link("dangling.db", "workspace/../chain.db")
      yield* at.link(at.path("gone", "deeper.db"), "deep.db")
      yield* at.link(at.path("there.db"), "good.db")
      for (const name of ["dangling.db", "chain.db", "deep.db"]) {
        for (const args of [["run", "list"], ["sessions"]]) {
          const { code, stderr } = yield* at.call([...args, "--store", at.path(name)])
          assert.strictEqual(code, 2, stderr)
          assert.include(stderr, `${name} is a link to `)
          assert.include(stderr, "nothing is there")
        }
      }
      const { code } = yield* at.call(["run", "list"], { env: { ASSENT_STORE: at.path("dangling.db") } })
      assert.strictEqual(code, 2)
      assert.isFalse(yield* at.exists("gone.db"))
      assert.strictEqual((yield* at.call(["run", "list", "--store", at.path("there.db")])).code, 0)
      assert.strictEqual((yield* at.call(["run", "list", "--store", at.path("good.db")])).code, 0)
    })
  )

  it.scopedLive("takes a file from the environment or the user's own configuration, and none from a workspace's", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", JSON.stringify({ store: "own.db" }))
      yield* at.write("workspace/.assent/config.json", JSON.stringify({ store: "/tmp/theirs.db" }))
      assert.strictEqual((yield* at.call(["run", "list"])).code, 0)
      assert.isTrue(yield* at.exists("config/own.db"))
      const env = { ASSENT_STORE: at.path("config", "other.db") }
      const trusted = yield* at.call(["run", "list", "--trust"], { env })
      assert.include(trusted.stderr, '"store" in the config.json of a workspace does not count')
      assert.isTrue(yield* at.exists("config/other.db"))
      const nothing = yield* at.call(["sessions", "waiting"], { env })
      assert.include(nothing.stderr, "no session waits")
    })
  )

  it.scopedLive(
    "that is removed under a chat is told of, and so is what became of a message, which is at the prompt again",
    () =>
      Effect.gen(function* () {
        const at = yield* Program.place
        const file = at.path("kept.db")
        const screen = yield* Pseudo.start(at, ["chat", "--store", file], { columns: 100, rows: 60 })
        yield* screen.sees((text) => text.endsWith("\n>"))
        for (const suffix of ["", "-wal", "-shm"]) rmSync(`${file}${suffix}`, { force: true })
        yield* screen.type("these words\r")
        const seen = yield* screen.sees((text) => /— failed —\n+> these words$/.test(text))
        const joined = seen.replace(/\n */g, " ")
        assert.include(
          joined,
          "was removed or replaced while it was open, and what is written would be lost. Open the session again. The agent may have begun with your words. They are not stored."
        )
      })
  )
})
