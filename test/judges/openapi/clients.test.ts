/** A client that `@hey-api/openapi-ts` makes of the OpenAPI document: its types hold, and its calls do what they say. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Program from "../../kit/Program.js"
import * as Served from "../../kit/Served.js"
import * as Judged from "../Judged.js"

const here = fileURLToPath(new URL(".", import.meta.url))

const settings = {
  compilerOptions: {
    strict: true,
    allowJs: true,
    checkJs: true,
    skipLibCheck: true,
    target: "es2024",
    module: "nodenext",
    lib: ["es2024", "dom", "dom.iterable", "dom.asynciterable"],
    types: [],
    outDir: "out"
  },
  include: ["*.js", "*.d.ts", "client"]
}

/** What the client's program needs of Node. */
const globals = "declare const process: { readonly argv: ReadonlyArray<string> }\n"

describe.skipIf(!Judged.isInstalled("openapi"))("the document", () => {
  it.scopedLive("is valid, as a validator of others says", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const served = yield* Served.serve(place, Served.asking(place))
      const file = place.at("openapi.json")
      fs.writeFileSync(file, JSON.stringify((yield* served.call("/openapi.json")).body))
      const program = `import { Validator } from "@seriousme/openapi-schema-validator"
        console.log(JSON.stringify(await new Validator().validate(process.argv[1])))`
      const { stderr, stdout } = yield* Program.execute(
        Judged.node("openapi"),
        ["--input-type=module", "--eval", program, file],
        { cwd: here, env: { HOME: place.at("home") } }
      )
      assert.strictEqual(stdout.trim(), '{"valid":true}', stderr)
    })
  )
})

describe.skipIf(!Judged.isInstalled("openapi"))("a client that others generate", () => {
  it.scopedLive("begins, sends, follows events, answers, and hears what was wrong", () =>
    Effect.gen(function* () {
      const place = yield* Served.place
      const model = place.script(
        { tools: [{ name: "run_command", params: { command: "touch made" } }] },
        {
          tools: [
            {
              name: "request_input",
              params: { title: "How many?", fields: [{ name: "count", type: "integer", minimum: 1 }] }
            }
          ]
        },
        { text: "All done." }
      )
      const served = yield* Served.serve(place, model)
      const root = place.at("client")
      fs.mkdirSync(root)
      fs.writeFileSync(path.join(root, "package.json"), '{ "type": "module" }')
      fs.writeFileSync(path.join(root, "tsconfig.json"), JSON.stringify(settings))
      fs.writeFileSync(path.join(root, "node.d.ts"), globals)
      fs.copyFileSync(path.join(here, "calls.js"), path.join(root, "calls.js"))
      fs.writeFileSync(path.join(root, "openapi.json"), JSON.stringify((yield* served.call("/openapi.json")).body))
      const resolve = createRequire(path.join(here, "package.json")).resolve
      const run = (file: string, ...args: ReadonlyArray<string>) =>
        Effect.map(
          Program.execute(Judged.node("openapi"), [file, ...args], { cwd: root, env: { HOME: place.at("home") } }),
          ({ code, stderr, stdout }) => {
            assert.strictEqual(code, 0, stdout + stderr)
            return stdout
          }
        )
      const generator = path.join(here, "node_modules/@hey-api/openapi-ts/bin/run.js")
      yield* run(generator, "-i", "openapi.json", "-o", "client")
      yield* run(resolve("typescript/bin/tsc"), "-p", ".")
      const lines = (yield* run("out/calls.js", served.url, served.token)).trim().split("\n")
      const said = lines.map((line) => JSON.parse(line))
      const of = (name: string) => {
        const found = said.filter((one) => one.name === name)
        assert.isNotEmpty(found, `${name}: ${lines.join("\n")}`)
        return found[0]
      }
      const statuses = Object.fromEntries(
        said.flatMap(({ name, status }) => (status === undefined ? [] : [[name, status]]))
      )
      assert.deepStrictEqual(statuses, {
        stranger: 401,
        begin: 200,
        "begin again": 200,
        "begin elsewhere": 403,
        "begin with a wrong field": 400,
        send: 200,
        "send again": 200,
        misfit: 422,
        answer: 200,
        "answer again": 200,
        late: 409,
        "wrong form": 422,
        form: 200,
        "unknown request": 404,
        session: 200,
        "unknown session": 404,
        page: 200,
        turns: 200,
        workspaces: 200,
        health: 200,
        metrics: 200,
        remove: 200
      })
      assert.strictEqual(of("begin with a wrong field").error._tag, "HttpApiDecodeError")
      assert.deepStrictEqual(of("send again").data, { messageId: "first", again: true })
      assert.deepStrictEqual(of("answer again").data, { status: "answered", again: true })
      assert.strictEqual(of("winner").data, "ada")
      assert.strictEqual(of("wrong form").error.problems[0].field, "count")
      assert.strictEqual(of("page").data.sessions[0].sessionId, "generated")
      assert.deepStrictEqual(of("session").data.open, [])
      assert.deepStrictEqual(
        said.filter(({ name }) => name === "event").map(({ data }) => data._tag),
        ["InteractionRequested", "InteractionRequested", "TurnEnded"]
      )
      const cursors = said.filter(({ name }) => name === "event").map(({ last }) => last)
      assert.deepStrictEqual(
        cursors,
        [...new Set(cursors)].sort((a, b) => a - b)
      )
      assert.isTrue(fs.existsSync(place.at("one", "made")))
    })
  )
})
