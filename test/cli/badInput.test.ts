import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Program from "../kit/Program.js"

interface Refusal {
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly says: ReadonlyArray<string | RegExp>
}

/** Every call must end with 2, on standard error, in a sentence and without a stack. */
const refused = (at: Program.Place, refusals: ReadonlyArray<Refusal>) =>
  Effect.forEach(
    refusals,
    ({ args, env = {}, says }) =>
      Effect.map(at.call(args, { env }), ({ code, stdout, stderr }) => {
        const what = args.join(" ")
        assert.strictEqual(code, 2, what)
        assert.strictEqual(stdout, "", what)
        assert.match(stderr, /^assent: \S[^]*\n$/, what)
        assert.notMatch(stderr, /^\s+at .*:\d+|\bError:|\bundefined\b|\[object /m, what)
        for (const text of says) {
          if (typeof text === "string") assert.include(stderr, text, what)
          else assert.match(stderr, text, what)
        }
      }),
    { concurrency: 2, discard: true }
  )

const providers = ["anthropic", "openai", "google", "openrouter", "ollama", "openai-compatible"]

describe.concurrent("bad input", () => {
  it.scopedLive("of flags, commands and channels is told with what can be given instead", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* refused(at, [
        {
          args: ["run", "--modle", "offline", "x"],
          says: [
            /^assent: There is no flag "--modle"\. Did you mean --model\?\nassent help run shows how to use it\.\n$/
          ]
        },
        {
          args: ["--frobnicate"],
          says: [
            /^assent: There is no flag "--frobnicate"\.\nassent help lists the commands, and assent help COMMAND lists its flags\.\n$/
          ]
        },
        { args: ["run", "--model"], says: [/^assent: --model needs a value: --model MODEL\.\nassent help run/] },
        {
          args: ["run", "--model", "--yolo"],
          says: [/^assent: --model needs a value: --model MODEL\./]
        },
        { args: ["run", "--yolo=no", "x"], says: ["--yolo takes no value."] },
        { args: ["run", "-x"], says: [/There is no flag "-x"\.\n/] },
        { args: ["rnu", "x"], says: ['"rnu"', "chat, run, permissions", 'assent run "rnu"'] },
        {
          args: ["run", "--channel", "telegram", "x"],
          says: ['"telegram"', "console, auto, halt, file:DIR, webhook:URL"]
        },
        { args: ["run", "--channel", "file:", "x"], says: ["file:DIR"] },
        { args: ["run", "--channel", "webhook:not-an-address", "x"], says: ["--channel webhook", "https://host/path"] },
        { args: ["run", "--channel", "halt", "--channel", "auto", "x"], says: ["halt"] },
        { args: ["run", "--yolo", "--channel", "auto", "x"], says: ["--yolo"] },
        { args: ["run", "--piped-answers"], says: ["needs a task"] },
        { args: ["run", "--piped-answers", "--channel", "auto", "x"], says: ["--piped-answers", "--channel console"] },
        { args: ["run", "--jsonl", "--channel", "console", "x"], says: ["--jsonl", "console"] },
        { args: ["run", "--jsonl", "--channel", "halt", "x"], says: ["--jsonl", "halt"] },
        { args: ["run", "--timeout", "soon", "x"], says: ['"soon"', "90s"] },
        { args: ["run", "--log-level", "loud", "x"], says: ["loud", "debug, info, warning, error, none"] }
      ])
    })
  )

  it.scopedLive("of models is told with the providers, the missing variable and the offline alternative", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* refused(at, [
        { args: ["run", "--model", "gpt", "x"], says: ['"gpt"', ...providers, "offline"] },
        { args: ["run", "--model", "acme/gpt", "x"], says: ['"acme"', ...providers, "offline"] },
        { args: ["run", "--model", "anthropic/claude", "x"], says: ["ANTHROPIC_API_KEY", "--model offline"] },
        { args: ["run", "--model", "openai/gpt", "x"], says: ["OPENAI_API_KEY", "--model offline"] },
        { args: ["run", "--json", "--model", "openrouter/x/y", "x"], says: ["OPENROUTER_API_KEY", "--model offline"] },
        { args: ["run", "--model", "openai-compatible/x", "x"], says: ["--base-url"] },
        { args: ["run", "--model", "openai-compatible/x", "--base-url", "localhost:1", "x"], says: ["http"] },
        { args: ["run", "x"], env: { ASSENT_MODEL: "acme/gpt" }, says: ['"acme"'] }
      ])
    })
  )

  it.scopedLive("of files is told with every problem and its path", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const policy = yield* at.write("policy.json", {
        version: 2,
        whitelist: { tools: ["run_command", 7], pattern: [] },
        guards: { sanitize: { pathScope: { roots: "/" } } }
      })
      const broken = yield* at.write("broken.json", '{ "version": 1,')
      const script = yield* at.write(
        "script.yaml",
        "version: 1\nagents:\n  main:\n    - txt: hello\n    - delay: soon\n    - error: flood\n"
      )
      yield* refused(at, [
        {
          args: ["run", "--policy", policy, "x"],
          says: [
            policy,
            /^ +\$\.version: /m,
            /^ +\$\.whitelist\.tools\[1\]: /m,
            /^ +\$\.whitelist\.pattern: /m,
            /^ +\$\.guards\.sanitize\.pathScope\b/m
          ]
        },
        { args: ["run", "--policy", broken, "x"], says: [broken, "not JSON"] },
        { args: ["run", "--policy", "nowhere.json", "x"], says: [at.path("workspace", "nowhere.json")] },
        {
          args: ["run", "--model", `script:${script}`, "x"],
          says: [script, /main\[0\]\.txt \(line 4\)/, /main\[1\]\.delay \(line 5\)/, /main\[2\]\.error \(line 6\)/]
        },
        { args: ["run", "--model", "script:nowhere.yaml", "x"], says: ["nowhere.yaml"] },
        { args: ["run", "--workspace", "nowhere", "x"], says: [at.path("workspace", "nowhere"), "not a directory"] },
        { args: ["run", "--workspace", policy, "x"], says: [policy, "not a directory"] },
        {
          args: ["run", "x"],
          env: { ASSENT_PERMISSION_TIMEOUT: "soon" },
          says: ["ASSENT_PERMISSION_TIMEOUT", '"soon"']
        }
      ])
    })
  )

  it.scopedLive("in the files that are always read is told with their names", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      const config = yield* at.write("config/config.json", { model: 7, limits: { max_steps: 0 }, colour: "red" })
      yield* refused(at, [{ args: ["run", "x"], says: [config, "model", "limits.max_steps", "colour"] }])
      yield* at.write("config/config.json", {})
      const policy = yield* at.write("workspace/.assent/permissions.json", { defaultPolicy: "maybe", whitelists: {} })
      const both = [policy, "$.defaultPolicy", "$.whitelists"]
      yield* refused(at, [
        { args: ["run", "x"], says: both },
        { args: ["permissions"], says: both }
      ])
      yield* at.write("config/permissions.json", "[]")
      yield* refused(at, [{ args: ["run", "x"], says: [at.path("config", "permissions.json")] }])
    })
  )

  it.scopedLive("of the permissions command is told with its verbs and tools", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* refused(at, [
        {
          args: ["permissions", "frobnicate"],
          says: [/^assent: There is no "permissions frobnicate"\. assent help permissions lists the commands\.\n$/]
        },
        { args: ["permissions", "check"], says: ["run_command", "write_file"] },
        { args: ["permissions", "check", "write_file", "{path"], says: ["The arguments are no JSON: "] },
        {
          args: ["permissions", "check", "write_file", '{"path":'],
          says: ["the text ends too early, after character 8."]
        },
        { args: ["permissions", "check", "run_command"], says: ["needs a command behind it"] },
        { args: ["permissions", "why", "run_command"], says: ["permissions why run_command git status"] },
        { args: ["permissions", "check", "write_file"], says: ["as JSON: path: is missing; content: is missing."] },
        { args: ["permissions", "allow", "git *"], says: ["/permissions allow git *", at.path("config")] }
      ])
    })
  )

  it.scopedLive("does not stop help and version", () =>
    Effect.gen(function* () {
      const at = yield* Program.place
      yield* at.write("config/config.json", "{")
      const help = yield* at.run(["--help"])
      assert.strictEqual(help.code, 0)
      assert.strictEqual(help.stderr, "")
      for (const text of ["assent run [TASK]", "--model MODEL", "130 cancelled"]) assert.include(help.stdout, text)
      assert.deepStrictEqual(yield* at.run(["run", "-h"]), yield* at.run(["help", "run"]))
      const version = yield* at.run(["-v"])
      assert.strictEqual(version.code, 0)
      assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/)
    })
  )
})
