import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as Redacted from "effect/Redacted"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Glob from "../../src/core/Glob.js"
import * as Redaction from "../../src/core/Redaction.js"
import * as Runs from "../kit/Runs.js"

const sources = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(directory, name))

const declared = "correct horse battery"
const tokens = [
  `sk-${"a1B2".repeat(8)}`,
  `ghp_${"a1B2".repeat(8)}`,
  `github_pat_${"a1_2".repeat(8)}`,
  `AIza${"a1-2".repeat(8)}`,
  `xoxb-${"a1-2".repeat(4)}`,
  "AKIAABCDEFGHIJKLMNOP",
  `glpat-${"a1_2".repeat(6)}`,
  "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4"
]
/** Addresses with a password, and without one that somebody has to keep. */
const addresses = [
  "postgres://app:s3cr3t-pa55@db.example/app",
  "https://deploy:a1B2@git.example:8443/x?y#z",
  "redis://:hunter-3@localhost",
  "https://me@corp.example:hazel-22@host/x",
  "https://bob:$ecret99@host",
  "https://bob:{brace9@host",
  "https://bob:*star99@host",
  "amqp://me:p@ss:w%40rd!$@[::1]:5672",
  "https:\\/\\/ann:s3cr@host",
  "https://ann:xyz@host"
]
const open = [
  "https://example.com/a:b@c",
  "https://me@example.com",
  "http://localhost:3000",
  "https://user:${TOKEN}@example.com",
  "https://user:{{ token }}@example.com".replaceAll(" ", ""),
  "https://user:$TOKEN@example.com",
  "https://user:****@example.com",
  "https://user:<password>@example.com",
  "postgres://postgres:postgres@localhost/app",
  "postgres://me:password@localhost/app",
  "https://a:b@c",
  '{"url":"http://localhost:3000","mail":"me@example.com"}',
  "['http://localhost:3000','me@example.com']",
  "http://localhost:3000,me@example.com",
  "<http://localhost:3000><me@example.com>",
  "at 12:30@noon, see user:pass@host"
]
/** Texts with a password: what stands before it, the password, and what stands behind it. */
const passwords: ReadonlyArray<readonly [before: string, password: string, after: string]> = [
  ["PGPASSWORD='", "a b", "' psql"],
  ["PGPASSWORD='", "a'\\''b c", "' psql"],
  ['MYSQL_PWD="', 'say \\"it\\" $loud', '" mysql'],
  ["DB_PASSWORD=", "it\\'s\\ secret", " node app.js"],
  ["export API_TOKEN=", "abcdefgh", ";"],
  ["mysql -u root -p'", "hunter3", "' app"],
  ['mysql -p"', "hun ter", '"'],
  ["sshpass -p ", "hunter3", " ssh host"],
  ["sshpass -p", "hunter3", " ssh host"],
  ["login --password ", "hunter3", " --user me"],
  ["login --token '", "the token", "'"],
  ["login --api-key=", "abc123", ""],
  ['{"client_secret": "', "abc-def-0123-x", '", "port": 1}'],
  ['{\\"access_token\\":\\"', "a1b2c3d4e5f6g7", '\\"}'],
  ["{'accessKey': '", "AbCdEf012345", "'}"],
  ["/login?password=", "hunter3", "&next=x"],
  ["Authorization: Basic ", "dXNlcjpwYXNz", ""],
  ['{"authorization":"Basic ', "dXNlcjpwYXNz", '"}'],
  ["authorization: bearer ", "a1b2c3d4e5f6", ""],
  ["https://bob:", "it's99", "@host/x"],
  ["'https://bob:", 'sa"y', "@host'"],
  ['{"url":"https://bob:', 'a\\"b', '@host"}']
]
/** Texts about passwords that have none. */
const about = [
  "the --password flag is new, --token too",
  "Usage: login --password PASSWORD --token <token>",
  'PGPASSWORD="$PASSWORD" psql && TOKEN=$TOKEN API_KEY=${KEY} run',
  "login(user, password=password, token=args.token)",
  "password=getpass(1), secret=os.environ[1]",
  'const password = "";',
  'login({ user: "ada", password: "hunter3" }); connect(password="it\'s 1")',
  '{"username":"ada","password":"correct-horse-1","apiKey":"test-key"}',
  "args.push('--password=' + word + '&x', \"password=\"+e+\"&\")",
  '{"password":"<password>","token":"${TOKEN}","secret":"xxxx","apiKey":"your-key"}',
  '"Auth.Password": "declines"',
  "mkdir -p 'a b' && cp -p x y",
  '["-p", profile, "-x"]',
  "the bearer authentication of Bearer authorization",
  "Authorization: Basic authentication",
  "['http://localhost:3000','me@example.com']",
  '{"a":"http://h:abc","b":"me@x"} {\\"a\\":\\"http://h:abc\\",\\"b\\":\\"me@x\\"}',
  "see `http://h:8080` or mail 'me@x'"
]
const redactor = () => Redaction.make([Redacted.make(declared), "hunter2"])

/** The parts of a secret that give it away. */
const core = (secret: string): string => secret.slice(-12)

const through = (self: Redaction.Redactor, pieces: ReadonlyArray<string>): string => {
  const flow = self.flow()
  return [...pieces.map((piece) => flow.push(piece)), flow.end()].join("")
}

const cut = (text: string, sizes: ReadonlyArray<number>): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = sizes[i % sizes.length] ?? 1
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

const plain = ["the quick", " fox-trot ", "x", "\n", ", ", "é日本", "snake_case", "src/a.ts", "J", "BK z", "😀", "."]
const beginnings = ["c", "cor", "correct horse", "hunt", "hunter", "sk", "AIz", "Beare", "xo"]
const hints = ["sk-", "ghp_", "github_pat_", "AIza", "xox", "AKIA", "glpat-", "eyJ", "Bearer", "Bearer "]

/** A text with what stands right before a mask as part of it: of a token, its hint may have been shown before it was one. */
const withoutHints = (text: string): string => text.replace(/(?:[\w.~+/=-]*\[REDACTED\])+/g, "[REDACTED]")

const shortest = [
  `sk-${"a".repeat(16)}`,
  `ghp_${"a".repeat(20)}`,
  `github_pat_${"a".repeat(20)}`,
  `AIza${"a".repeat(20)}`,
  `xoxb-${"a".repeat(10)}`,
  `AKIA${"A".repeat(16)}`,
  `glpat-${"a".repeat(16)}`,
  `eyJ${"a".repeat(8)}.${"a".repeat(8)}.${"a".repeat(8)}`,
  `Bearer ${"a".repeat(12)}`
]

const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 8 })

describe("Redaction", () => {
  it("masks declared secrets as addresses and base64 write them, whatever stands around", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 8, maxLength: 40 }),
        fc.string({ maxLength: 5 }),
        fc.string({ maxLength: 5 }),
        (secret, before, after) => {
          const self = Redaction.make([secret])
          const bytes = Buffer.from(before + secret + after)
          const whole = Buffer.from(secret)
          const start = Buffer.from(before).length
          for (const alphabet of ["base64", "base64url"] as const) {
            const coded = bytes.toString(alphabet)
            const masked = self.text(`x ${coded} y`)
            // Of what remains nothing gives away more than the edges of the secret, which share characters with what stands around.
            const [head = "", tail = ""] = masked.replace(/^x | y$/g, "").split(Redaction.mask)
            assert.include(masked, Redaction.mask, `${secret} in ${coded}`)
            assert.isAtMost(Buffer.from(head, alphabet).length, start + 1)
            assert.isAtMost(tail.replace(/=+$/, "").length, Math.ceil(((Buffer.from(after).length + 1) * 8) / 6) + 1)
            assert.isAbove(whole.length, 0)
          }
          for (const written of [
            encodeURIComponent(secret),
            encodeURIComponent(secret).toLowerCase() === encodeURIComponent(secret)
              ? encodeURIComponent(secret)
              : encodeURI(secret),
            encodeURIComponent(secret).replaceAll("%20", "+"),
            encodeURIComponent(secret).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
            new URLSearchParams({ k: secret }).toString().slice(2)
          ]) {
            assert.strictEqual(self.text(`?a=${written}&b`), `?a=${Redaction.mask}&b`, written)
          }
        }
      ),
      // As an address writes it, it begins with itself.
      { examples: [["'''''''%", "", ""]] }
    )
  })

  it("masks a long secret in base64 whose lines a program has broken", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 58, maxLength: 300 }),
        fc.constantFrom(64, 76),
        fc.constantFrom("\n", "\r\n"),
        fc.constantFrom("", "\n"),
        (secret, length, end, after) => {
          const coded = Buffer.from(secret + after).toString("base64")
          const text = `x\n${coded.replace(new RegExp(`(.{${length}})`, "g"), `$1${end}`)}${end}y`
          const [, rest = "nothing is masked"] = Redaction.make([secret]).text(text).split(`x\n${Redaction.mask}`)
          // The end of a group shares characters with what follows.
          assert.isAtMost(rest.replace(/[\r\n=]|y$/g, "").length, 3, text)
        }
      )
    )
  })

  it("leaves what merely looks like a token to whoever has to see it", () => {
    const self = redactor()
    for (const token of tokens) {
      assert.strictEqual(self.declared.text(`run ${token} ${declared}`), `run ${token} ${Redaction.mask}`)
      assert.deepStrictEqual(self.declared.value({ a: [token, declared] }), { a: [token, Redaction.mask] })
      assert.notInclude(self.text(`run ${token}`), core(token))
    }
    const value = { a: tokens }
    assert.strictEqual(self.declared.value(value), value)
    assert.strictEqual(Redaction.shapesOnly.declared.value(value), value)
  })

  it("masks declared secrets and token shapes in texts and values", () => {
    const self = redactor()
    for (const secret of [declared, "hunter2", ...tokens]) {
      assert.strictEqual(self.text(`a ${secret} b`), "a [REDACTED] b")
      assert.deepStrictEqual(self.value({ [secret]: [secret, { deep: `${secret}` }] }), {
        "[REDACTED]": ["[REDACTED]", { deep: "[REDACTED]" }]
      })
    }
    assert.strictEqual(self.text("Authorization: Bearer abcdefghijklmnop"), "Authorization: Bearer [REDACTED]")
  })

  it("masks the password of an address, and no other part", () => {
    const shown = addresses.map((address) => redactor().text(`see ${address}, now`))
    assert.deepStrictEqual(shown, [
      "see postgres://app:[REDACTED]@db.example/app, now",
      "see https://deploy:[REDACTED]@git.example:8443/x?y#z, now",
      "see redis://:[REDACTED]@localhost, now",
      "see https://me@corp.example:[REDACTED]@host/x, now",
      "see https://bob:[REDACTED]@host, now",
      "see https://bob:[REDACTED]@host, now",
      "see https://bob:[REDACTED]@host, now",
      "see amqp://me:[REDACTED]@[::1]:5672, now",
      "see https:\\/\\/ann:[REDACTED]@host, now",
      "see https://ann:[REDACTED]@host, now"
    ])
    for (const text of [...open, ...shown]) assert.strictEqual(redactor().text(text), text)
    assert.strictEqual(redactor().text("://:abcd@"), "://:[REDACTED]@")
    for (const address of addresses) assert.strictEqual(redactor().declared.text(address), address)
  })

  it("masks the password of an assignment, an option, a member and a header, and no other part", () => {
    for (const [before, password, after] of passwords) {
      const masked = `${before}${Redaction.mask}${after}`
      assert.strictEqual(redactor().text(`${before}${password}${after}`), masked)
      assert.strictEqual(redactor().text(masked), masked)
    }
    for (const text of about) assert.strictEqual(redactor().text(text), text)
  })

  it("masks a declared secret as a shell and a rule write it", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 6 }), (secret) => {
        fc.pre(!/^[\w ]*$/.test(secret))
        const self = Redaction.make([secret])
        for (const written of [
          `'${secret.replaceAll("'", `'\\''`)}'`,
          `"${secret.replace(/["\\$`]/g, "\\$&")}"`,
          secret.replace(/[^\w@%+=:,./-]/g, "\\$&"),
          Glob.escape(secret),
          JSON.stringify(JSON.stringify(secret))
        ])
          assert.include(self.text(`x ${written} y`), Redaction.mask, written)
      })
    )
  })

  it("leaves what this repository says readable", () => {
    const own = "src/core/Redaction.ts"
    for (const file of sources("src").filter((name) => name !== own)) {
      const text = readFileSync(file, "utf8")
      assert.strictEqual(Redaction.shapesOnly.text(text), text, file)
    }
  })

  it("gives back the very value in which nothing was masked", () => {
    const value = { a: ["b", 1, null, true], c: undefined }
    assert.strictEqual(redactor().value(value), value)
  })

  it("masks a secret inside JSON text, where it is escaped", () => {
    const secret = 'quo"ted\\secret'
    assert.notInclude(Redaction.make([secret]).text(JSON.stringify({ secret })), "ted")
  })

  it("a text without secrets flows unchanged, however it is cut, and nothing waits for long", () =>
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z ,.\n-]*$/), sizes, (text, sizes) => {
        fc.pre(redactor().text(text) === text)
        assert.strictEqual(through(redactor(), cut(text, sizes)), text)
      })
    ))

  it("plain words are shown at once", () => {
    const flow = Redaction.make().flow()
    for (const piece of ["three", " gifts", " for s", "gh", "eye", "Bear", ", x"]) {
      assert.strictEqual(flow.push(piece), piece)
    }
    assert.strictEqual(flow.end(), "")
  })

  it("a secret is masked however it is cut, and what stands around it is not", () =>
    fc.assert(
      fc.property(
        fc.constantFrom(declared, "hunter2", ...tokens, `Bearer ${"a1b2".repeat(5)}`),
        fc.constantFrom("", "a ", "cor", "corr ", "x\n", "s", "hunter", "Bearer"),
        fc.constantFrom("", " b", ", and on", "\n", "!correct", '"}', ...tokens.map((token) => ` ${token}!`)),
        sizes,
        (secret, before, end, sizes) => {
          const text = `${before.endsWith("\n") || before === "" ? before : `${before} `}${secret}${end}`
          const shown = through(redactor(), cut(text, sizes))
          for (const hidden of [secret, ...tokens]) assert.notInclude(shown, core(hidden))
          assert.include(shown, "[REDACTED]")
          assert.isTrue(shown.startsWith(before.slice(0, 3)), shown)
          // Of a token, its hint may have been shown before it was one.
          assert.isTrue(shown.endsWith(redactor().text(end) === end ? end : "[REDACTED]!"), shown)
        }
      ),
      { numRuns: Runs.of(2000) }
    ))

  it("what flows is the masked whole, however it is cut and whatever stands around", () =>
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom(...plain, ...beginnings, declared, "hunter2"), fc.string({ maxLength: 6 }))),
        sizes,
        (pieces, sizes) => {
          const text = pieces.join("")
          const masked = redactor().text(text)
          assert.strictEqual(through(redactor(), cut(text, sizes)), masked)
        }
      ),
      { numRuns: Runs.of(3000) }
    ))

  it("nor with tokens in it, but for the hints of tokens, which may be shown", () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.constantFrom(
            ...[...plain, ...hints, ...tokens, ...shortest, " ", " ", declared, `Bearer ${"a1b2".repeat(5)}`],
            ...[...passwords.flat(), ...passwords.map((parts) => parts.join("")), ...about, '"', "'", "=", "\\"],
            ...[...addresses, ...open, "://", ":", "/", "@", "http:", "//me:pass"]
          )
        ),
        sizes,
        (pieces, sizes) => {
          const text = pieces.join("")
          for (const self of [redactor(), Redaction.make()]) {
            const shown = through(self, cut(text, sizes))
            assert.strictEqual(withoutHints(shown), withoutHints(self.text(text)))
          }
        }
      ),
      { numRuns: Runs.of(3000) }
    ))

  it("a secret that is declared while a text flows is masked from then on", () => {
    const self = Redaction.make()
    const flow = self.flow()
    assert.strictEqual(flow.push("my-pass"), "my-pass")
    self.declare("my-password")
    assert.notInclude(flow.push("word and my-password") + flow.end(), "word")
  })

  it("the shortest token of each shape is masked where it is all there is", () => {
    for (const token of shortest) assert.strictEqual(redactor().text(token), token.replace(/[^ ]+$/, "[REDACTED]"))
  })

  it("gives back the same when only a part that is no text is odd", () => {
    const value = { odd: [Number.NaN, -0, undefined], on: new Date(0) }
    assert.strictEqual(redactor().value(value), value)
  })

  it("leaves a value alone in which it masks something", () => {
    const value = { plain: ["hunter2", 1], hunter2: { deep: ["a"] } }
    const before = structuredClone(value)
    assert.deepStrictEqual(redactor().value(value), { plain: ["[REDACTED]", 1], "[REDACTED]": { deep: ["a"] } })
    assert.deepStrictEqual(value, before)
  })

  it("writes a value down for people", () => {
    const brief: ReadonlyArray<readonly [unknown, string]> = [
      ["a b", "a b"],
      [{ path: "src" }, "src"],
      [{ a: 1, b: -0.5, c: 1e21, d: Number.NaN, e: -0 }, "a=1, b=-0.5, c=1e+21, d=null, e=0"],
      [{ a: "x", b: { c: [1] }, d: undefined, e: null }, 'a=x, b={"c":[1]}, d=, e=null'],
      [[1, "a"], '[1,"a"]'],
      [{}, ""],
      [undefined, ""],
      [7, "7"],
      [{ key: "hunter2" }, "[REDACTED]"]
    ]
    for (const [value, text] of brief) assert.strictEqual(Redaction.summarize(value, redactor()), text)
    assert.strictEqual(Redaction.summarize("abcdef", redactor(), 4), "abc…")
  })

  it("a run that goes on for ever is not kept for ever", () => {
    const flow = Redaction.make().flow()
    let shown = 0
    for (let i = 0; i < 2_000; i++) shown += flow.push("sk-_".repeat(10)).length
    assert.isAbove(shown, 0)
  })
})
