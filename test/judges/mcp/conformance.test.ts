/** The conformance kit of the protocol, over a client of our built library: `client.mjs`. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { fileURLToPath } from "node:url"
import * as Program from "../../kit/Program.js"
import * as Judged from "../Judged.js"

const judged = it.scopedLive.skipIf(!Judged.isInstalled("mcp"))

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

const kit = (version: string, ...words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const place = yield* Program.place
    const client = `${process.execPath} ${at("client.mjs")}`
    const { stderr, stdout } = yield* Judged.run(place, Judged.node("mcp"), [
      at(`node_modules/${version}/dist/index.js`),
      "client",
      "--command",
      client,
      ...words
    ])
    return stdout + stderr
  })

const newer = "@modelcontextprotocol/conformance"
const older = "conformance-0"

describe("the conformance kit", () => {
  const scenarios: ReadonlyArray<readonly [version: string, scenario: string, passed: string]> = [
    [newer, "initialize", "1/1"],
    [newer, "tools_call", "2/2"],
    [newer, "elicitation-sep1034-client-defaults", "5/5"],
    [newer, "sse-retry", "3/3"],
    [newer, "sep-2322-client-request-state", "5/5"],
    [older, "initialize", "1/1"],
    [older, "tools_call", "1/1"],
    [older, "elicitation-sep1034-client-defaults", "5/5"],
    [older, "sse-retry", "3/3"]
  ]
  for (const [version, scenario, passed] of scenarios) {
    judged(`${version === newer ? "0.2.0-alpha.12" : "0.1.16"}: ${scenario}`, () =>
      Effect.gen(function* () {
        const said = yield* kit(version, "--scenario", scenario)
        assert.include(said, `Passed: ${passed}, 0 failed`)
      })
    )
  }

  const signIn: ReadonlyArray<readonly [scenario: string, passed: string]> = [
    ["metadata-default", "21/21"],
    ["metadata-var1", "21/21"],
    ["metadata-var2", "21/21"],
    ["metadata-var3", "21/21"],
    // It wishes for an identity at an address of our own, which a program on a person's machine has not.
    ["basic-cimd", "16/16"],
    ["scope-from-www-authenticate", "17/17"],
    ["scope-from-scopes-supported", "17/17"],
    ["scope-omitted-when-undefined", "17/17"],
    ["scope-step-up", "26/26"],
    ["scope-retry-limit", "30/30"],
    ["token-endpoint-auth-basic", "22/22"],
    ["token-endpoint-auth-post", "22/22"],
    ["token-endpoint-auth-none", "22/22"],
    ["pre-registration", "16/16"]
  ]
  for (const [scenario, passed] of signIn) {
    judged(`0.2.0-alpha.12: auth/${scenario}`, () =>
      Effect.gen(function* () {
        const said = yield* kit(newer, "--scenario", `auth/${scenario}`, "--timeout", "100000")
        assert.include(said, `Passed: ${passed},`)
      })
    )
  }
})
