import { assert, describe, it } from "@effect/vitest"
import * as Signature from "../../src/permission/Signature.js"

describe("a call in one line", () => {
  it("has its arguments by name, and values as JSON where they are no text", () => {
    const table: ReadonlyArray<readonly [unknown, string]> = [
      [undefined, "t()"],
      [null, "t()"],
      ["a b", "t(a b)"],
      [7, "t(7)"],
      [[1, "a"], 't([1,"a"])'],
      [{}, "t()"],
      [{ b: 1, a: "x", c: undefined, d: null, e: { g: 1, f: [true] } }, 't(a=x, b=1, d=null, e={"f":[true],"g":1})']
    ]
    for (const [params, line] of table) assert.strictEqual(Signature.ofCall("t", params), line)
  })

  it("hides from rules that allow what imitates an argument", () => {
    const mask = "\uffff"
    const table: ReadonlyArray<readonly [unknown, string]> = [
      [undefined, "t()"],
      ["path=src", "t(path=src)"],
      [{ a: "x", b: "y" }, "t(a=x, b=y)"],
      [{ a: "x", b: undefined }, "t(a=x)"],
      // A lone value may be an address.
      [{ url: "https://a.b/?q=1" }, "t(url=https://a.b/?q=1)"],
      [{ url: "https://a.b/?q=1", b: undefined }, "t(url=https://a.b/?q=1)"],
      [{ url: "https://a.b/?q=1", b: "y" }, `t(b=y, url=https://a.b/?q${mask}1)`],
      [{ a: "path=src/a" }, `t(a=path${mask}src/a)`],
      [{ a: "x, path=src/a" }, `t(a=x${mask}path${mask}src/a)`],
      [{ a: ["x", "path=src/a"] }, `t(a=["x"${mask}"path${mask}src/a"])`],
      [{ a: { b: "path=src/a" } }, `t(a={"b":"path${mask}src/a"})`],
      [{ a: null, b: "c=d" }, `t(a=null, b=c${mask}d)`],
      [{ a: 1, b: true }, "t(a=1, b=true)"],
      [{ "a, b": "x" }, `t(${mask}=x)`],
      [{ "a b": "x", c: "y" }, `t(${mask}=x, c=y)`]
    ]
    for (const [params, line] of table) assert.strictEqual(Signature.toAllow("t", params), line)
  })

  it("has paths and addresses in their shortest and canonical form", () => {
    const places = (params: unknown) => Signature.withPlaces(params, ["path", "paths"], "/ws")
    const same = [{ other: "./a" }, "./a", undefined, null]
    for (const params of same) assert.strictEqual(places(params), params)
    assert.deepStrictEqual(places({ path: "./src//a", other: "./b" }), { path: "src/a", other: "./b" })
    assert.deepStrictEqual(places({ path: "/ws", paths: ["./a", "/ws/b/../c", 7, ["./d"]] }), {
      path: ".",
      paths: ["a", "c", 7, ["d"]]
    })
    const web = (params: unknown, field: string | undefined = "url") => Signature.withAddress(params, field)
    for (const params of [{ url: 7 }, { url: "no address" }, { other: "HTTPS://A.B" }, "HTTPS://A.B", null])
      assert.strictEqual(web(params), params)
    const given = { url: "HTTPS://EXAMPLE.com" }
    assert.strictEqual(Signature.withAddress(given, undefined), given)
    assert.deepStrictEqual(web({ ...given, a: 1 }), { url: "https://example.com/", a: 1 })
  })

  it("has the address that a lenient tool reaches, for rules that deny", () => {
    const reached = (params: unknown) => Signature.withReached(params, "url")
    for (const params of [undefined, "https://a.b", { url: 7 }, { url: "no address" }, {}])
      assert.strictEqual(reached(params), params)
    assert.deepStrictEqual(reached({ url: " https:ann:secret@Example.com..:443/x ", a: 1 }), {
      url: "https://example.com/x",
      a: 1
    })
  })

  it("is compared with patterns whose own paths are shortened, too", () => {
    assert.lengthOf(Signature.globs("t(path=src/*)"), 1)
    assert.lengthOf(Signature.globs("t(path=./src//a)"), 2)
  })

  it("yields every text in a value", () => {
    assert.deepStrictEqual(Signature.stringsIn({ a: "1", b: ["2", { c: "3", d: 4, e: null }], f: true }), [
      "1",
      "2",
      "3"
    ])
    assert.deepStrictEqual(Signature.stringsIn("1"), ["1"])
    assert.deepStrictEqual(Signature.stringsIn(null), [])
  })
})
