import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Flags from "../../src/cli/config/Flags.js"
import * as ModelServer from "../kit/ModelServer.js"
import * as Program from "../kit/Program.js"
import { chat } from "../kit/Wire.js"

const commands = "chat run permissions profiles sessions audit answer doctor completion help".split(" ")

describe("help", () => {
  it.live("is there for everything and for each command, on request and on --help", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const all = yield* place.call(["help"])
        assert.deepStrictEqual(all, yield* place.call(["--help"]))
        assert.strictEqual(all.code, 0)
        for (const command of commands) assert.match(all.stdout, new RegExp(`^  assent \\[?${command}`, "m"))
        for (const command of ["run", "sessions", "completion"]) {
          const one = yield* place.call(["help", command])
          assert.deepStrictEqual(one, yield* place.call([command, "--help"]))
          assert.isTrue(one.stdout.startsWith(`assent ${command}`))
          assert.include(one.stdout, "For example:")
        }
        assert.notInclude((yield* place.call(["help", "run"])).stdout, "--speed")
        // The help about everything has the common flags only; each command has its own.
        const flags = Array.from(all.stdout.matchAll(/^ +(?:-\w, )?--(\S+)/gm), ([, name]) => name)
        assert.sameMembers(flags, [...Flags.common])
        assert.isAtMost(flags.length, 12)
        const settings = yield* place.call(["help", "settings"])
        assert.deepStrictEqual([settings.code, settings.stderr], [0, ""])
        assert.match(settings.stdout, /^ {2}limits\.max_cost +\S/m)
        // The list of a command's flags says by itself that it takes them.
        const owned = new RegExp(`^ +(?:-\\w, )?--\\S+.*  (?:${commands.join("|")})[,:]`, "m")
        for (const command of commands) assert.notMatch((yield* place.call(["help", command])).stdout, owned)
      })
    )
  )

  it.live("names what was probably meant", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const slips: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
          [["sesions"], "Did you mean sessions?"],
          [["help", "docter"], "Did you mean doctor?"],
          [["--modle", "x"], "Did you mean --model?"],
          [["run", "--contniue"], "Did you mean --continue?"]
        ]
        for (const [args, hint] of slips) {
          const { code, stderr } = yield* place.call(args)
          assert.strictEqual(code, 2)
          assert.include(stderr, hint)
        }
        const { stderr } = yield* place.call(["frobnicate"])
        assert.notInclude(stderr, "Did you mean")
      })
    )
  )
})

/** Every file and directory there, with what tells whether it was touched. */
const tree = (root: string): ReadonlyArray<string> =>
  fs
    .readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => {
      const file = path.join(entry.parentPath, entry.name)
      const { ino, mtimeMs, size } = fs.lstatSync(file)
      return `${file} ${ino} ${mtimeMs} ${size}`
    })
    .sort()

describe("doctor", () => {
  it.live("only looks: it makes nothing, and touches no store, whatever the flags", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        yield* place.write("workspace/.assent/permissions.json", { whitelist: { tools: ["write_file"] } })
        for (const before of [[], ["run", "--yolo", "list"]]) {
          if (before.length > 0) assert.strictEqual((yield* place.run(before)).code, 0)
          const was = tree(place.path("."))
          for (const flags of [[], ["--trust"], ["--store", place.path("new", "store.db")], ["--store", ":memory:"]]) {
            const { code, stdout } = yield* place.call(["doctor", ...flags])
            assert.strictEqual(code, 0, stdout)
            assert.deepStrictEqual(tree(place.path(".")), was)
            const trust =
              flags[0] === "--trust"
                ? "shown as if this workspace were trusted, and it is not"
                : "this workspace is not trusted"
            assert.match(stdout, new RegExp(`– trust .*${trust}`))
          }
        }
        yield* place.run(["run", "--trust", "list"])
        assert.match((yield* place.call(["doctor"])).stdout, /✓ trust .*this workspace is trusted/)
        assert.match((yield* place.call(["doctor"])).stdout, /✓ store +\S+sessions\.db, \d+ kB/)
      })
    )
  )

  it.live("asks a local server whether it is there and has the model, and no vendor", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const server = yield* ModelServer.make
        const look = (model: string, url = `${server.url}/v1`) =>
          Effect.map(
            place.call(["doctor", "--model", model, "--base-url", url], {
              env: { OPENAI_COMPATIBLE_API_KEY: "key", OPENAI_API_KEY: "key" }
            }),
            ({ code, stdout }) => `${code} ${/^. model +(.*)$/m.exec(stdout)?.[0]}`
          )
        const listed = {
          headers: { "content-type": "application/json" },
          body: '{"data":[{"id":"one"},{"id":"two:latest"}]}'
        }
        yield* server.play(listed, listed, listed, { status: 404, body: "<p>no</p>" })
        assert.match(yield* look("openai-compatible/one"), /^0 ✓ model +openai-compatible\/one, by http/)
        assert.match(yield* look("ollama/two"), /^0 ✓/)
        assert.match(yield* look("ollama/three"), /^1 ✗ .*has no such model, but ollama\/one, ollama\/two:latest\.$/)
        assert.match(yield* look("openai-compatible/any"), /^0 ✓/)
        assert.strictEqual((yield* server.received).url, "/v1/models")
        assert.match(
          yield* look("ollama/x", "http://127.0.0.1:9/v1"),
          /^1 ✗ .*no server answers at http:\/\/127\.0\.0\.1:9/
        )
        assert.match(yield* look("openai/gpt-5"), /^0 ✓ model +openai\/gpt-5$/)
        assert.strictEqual(server.count(), 4)
        const context = (...flags: ReadonlyArray<string>) =>
          Effect.map(
            place.call(["doctor", ...flags], { env: { ANTHROPIC_API_KEY: "key", OPENROUTER_API_KEY: "key" } }),
            ({ stdout }) => /^. context +(.*)$/m.exec(stdout)?.[0]
          )
        assert.match((yield* context("--model", "anthropic/claude-sonnet-4-5")) ?? "", /^✓ context +200,000 tokens$/)
        const any = yield* context("--model", "openrouter/any/one")
        assert.match(any ?? "", /^– context +not known, 128,000 tokens are assumed; "models" in config\.json names it$/)
        assert.isUndefined(yield* context())
        yield* place.write("config/config.json", { models: { "openrouter/any/one": { context_window: 32_000 } } })
        assert.match((yield* context("--model", "openrouter/any/one")) ?? "", /^✓ context +32,000 tokens$/)
      })
    )
  )

  it.live("says which thinking the chosen model does not take, as a run does, once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const server = yield* ModelServer.make
        yield* place.write("config/config.json", {
          models: { "openai-compatible/one": { thinking: 2048 }, "openai-compatible/two": { thinking: "low" } }
        })
        const sentence = '"thinking": 2048 of openai-compatible/one does nothing: this model takes low, medium or high.'
        const flags = (model: string) => ["--model", `openai-compatible/${model}`, "--base-url", `${server.url}/v1`]
        yield* server.play(
          { status: 404, body: "" },
          { status: 404, body: "" },
          ModelServer.eventStream(chat.events({ text: ["ok"] })),
          ModelServer.eventStream(chat.events({ text: ["ok"] }))
        )
        assert.include((yield* place.call(["doctor", ...flags("one")])).stdout, `– thinking      ${sentence}\n`)
        assert.notInclude((yield* place.call(["doctor", ...flags("two")])).stdout, "thinking")
        assert.deepStrictEqual(yield* place.call(["run", ...flags("one"), "hello"]), {
          code: 0,
          stdout: "ok\n",
          stderr: `assent: ${sentence}\n`
        })
        assert.strictEqual((yield* place.call(["run", ...flags("two"), "hello"])).stderr, "")
        // A model of a subagent is told at the start, and one that is picked when it is; each once.
        yield* place.write("config/profiles/looker.json", {
          name: "looker",
          description: "Looks.",
          provider: "openai-compatible",
          model: "one"
        })
        const chatted = yield* place.call(["chat", ...flags("two")], {
          stdin: "/model openai-compatible/three\n/model openai-compatible/one\n"
        })
        const said = chatted.stdout.split(sentence)
        assert.strictEqual(said.length, 3, chatted.stdout)
        assert.notInclude(said[0] ?? "", "The model is now")
        assert.match(said[1] ?? "", /The model is now openai-compatible\/one\.\n$/)
        assert.include((yield* place.call(["doctor", ...flags("three")])).stdout, sentence)
      })
    )
  )

  it.live("says what works, shows no key, and fails where something is broken", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const place = yield* Program.place
        const secret = "sk-1234567890abcdefghij"
        const well = yield* place.call(["doctor"], { env: { OPENAI_API_KEY: secret } })
        assert.strictEqual(well.code, 0, well.stdout)
        assert.match(well.stdout, /✓ keys +there is one for openai/)
        assert.match(well.stdout, /✓ store +.*which the first session makes/)
        assert.notInclude(well.stdout, secret)
        assert.isFalse(yield* place.exists("state"))
        const ill = yield* place.call(["doctor", "--model", "openai/gpt-5"], {
          env: { ASSENT_STATE_DIR: "/proc/nowhere" }
        })
        assert.strictEqual(ill.code, 1)
        assert.match(ill.stdout, /✗ model +.*OPENAI_API_KEY/)
        assert.match(ill.stdout, /✗ store /)
        yield* place.write("config/permissions.json", "{")
        const wrong = yield* place.call(["doctor"])
        assert.strictEqual(wrong.code, 1)
        assert.match(wrong.stdout, /✗ settings +.*permissions\.json/)
      })
    )
  )
})
