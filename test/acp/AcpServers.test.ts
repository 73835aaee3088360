import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as fc from "fast-check"
import * as AcpServers from "../../src/acp/AcpServers.js"
import * as ServerSettings from "../../src/tool/ServerSettings.js"
import * as Runs from "../kit/Runs.js"

const stdio = (name: string) => ({ name, command: "/bin/server", args: ["a b"], env: [{ name: "KEY", value: "v" }] })

describe("the tool servers of an editor", () => {
  it("are used as they are given", () => {
    const http = {
      type: "http" as const,
      name: "web",
      url: "https://a.example.com",
      headers: [{ name: "X", value: "y" }]
    }
    assert.deepStrictEqual(
      AcpServers.of([stdio("files"), http]),
      Either.right({
        servers: {
          files: { command: "/bin/server", args: ["a b"], env: { KEY: "v" } },
          web: { url: "https://a.example.com", headers: { X: "y" } }
        },
        remarks: []
      })
    )
  })

  it("get a name that tools can have, and the editor hears of it", () => {
    const { remarks, servers } = Either.getOrThrow(AcpServers.of([stdio("My files!"), stdio("My files?"), stdio("…")]))
    assert.deepStrictEqual(Object.keys(servers), ["My-files", "My-files-2", "server"])
    assert.deepStrictEqual(remarks, [
      'The tool server "My files!" is named My-files here.',
      'The tool server "My files?" is named My-files-2 here.',
      'The tool server "…" is named server here.'
    ])
  })

  it("over SSE are left out with a sentence", () => {
    assert.deepStrictEqual(
      AcpServers.of([{ type: "sse", name: "old", url: "https://a.example.com", headers: [] }]),
      Either.right({ servers: {}, remarks: ['The tool server "old" speaks over SSE, which is not supported.'] })
    )
  })

  it("that can be none are refused with a sentence", () => {
    for (const wrong of [
      { ...stdio("a"), command: "" },
      { type: "http" as const, name: "a", url: "file:///etc/passwd", headers: [] },
      { type: "http" as const, name: "a", url: "no address", headers: [] }
    ]) {
      const refused = AcpServers.of([wrong])
      assert.match(Either.isLeft(refused) ? refused.left : "", /^The tool servers cannot be used: .+\.$/)
    }
  })

  it("have names of their own, whatever the editor calls them", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.fullUnicodeString(), fc.constantFrom("a", "A", "a__b", "__proto__", "x".repeat(40)))),
        (names) => {
          const { servers } = Either.getOrThrow(AcpServers.of(names.map(stdio)))
          assert.lengthOf(Object.keys(servers), names.length)
          for (const name of Object.keys(servers)) assert.isTrue(ServerSettings.isName(name), name)
        }
      ),
      { numRuns: Runs.of(800) }
    )
  })
})
