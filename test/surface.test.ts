/**
 * What the package declares is a decision: every public name and its type is kept in `surface/`, a file for each room.
 * Whoever means to change it runs `npm run surface`, and the difference is part of the change.
 */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { expect } from "vitest"
import * as PublicSurface from "./kit/PublicSurface.js"

const { dangling, modules } = PublicSurface.read()
const roomOf = ({ path }: PublicSurface.PublicModule) => path.split("/")[0] ?? ""
/** Before the first test, which writes what is missing. */
const kept = readdirSync("test/surface").sort()
const rooms = [...new Set(modules.map(roomOf))].sort()
const names = modules.flatMap((module) =>
  module.names.map((name) => ({ ...name, path: `${module.path}.${name.name}` }))
)

describe("the public declarations", () => {
  it("are kept for every room and for no other", () => {
    assert.deepStrictEqual(
      kept,
      rooms.map((room) => `${room}.txt`)
    )
  })

  it.each(rooms)("are those that were decided on: %s", async (room) => {
    const text = modules
      .filter((module) => roomOf(module) === room)
      .map(({ names, path }) => [`# ${path}`, ...names.map(({ name, text }) => `## ${name}\n${text}`)].join("\n\n"))
      .join("\n\n\n")
    await expect(`${text}\n`).toMatchFileSnapshot(`surface/${room}.txt`)
  })

  it("have layers as values where there is nothing to set, and as functions where there is", () => {
    const layers = names.filter(({ name }) => /^layer(?:[A-Z]|$)/.test(name))
    assert.isAbove(layers.length, 25)
    const isValue = (text: string) => /^const \w+: Layer\.Layer</m.test(text)
    const takesOptions = (text: string) => /^(?:const \w+: |function \w+)(?:<.*?>)?\((?!\))/m.test(text)
    const wrong = layers.filter(({ text }) => !isValue(text) && !takesOptions(text)).map(({ path }) => path)
    assert.deepStrictEqual(wrong, [])
  })

  it("have layers with the options of what they make", () => {
    const textOf = (module: PublicSurface.PublicModule, name: string) =>
      module.names.find((named) => named.name === name)?.text ?? ""
    const wrong = modules.filter(
      (module) =>
        /^const make: \(/m.test(textOf(module, "make")) && /^const layer: Layer\./m.test(textOf(module, "layer"))
    )
    assert.deepStrictEqual(
      wrong.map(({ path }) => path),
      []
    )
  })

  it("have layers with settings from Config where an address, a key or a place on a disk is set", () => {
    const isPlace = /^ {4}readonly (?:url|baseUrl|file|directory)\??: |(?::|\?:) Redacted\.Redacted\b/m
    const placed = modules.filter(
      ({ names }) =>
        names.some(({ name, text }) => name === "layer" && /\boptions\??: (?:\w+\.)?Options\b/.test(text)) &&
        names.some(({ name, text }) => /^(?:Options|Settings)$/.test(name) && isPlace.test(text))
    )
    assert.isAtLeast(placed.length, 10)
    assert.deepStrictEqual(
      placed.filter(({ names }) => !names.some(({ name }) => name === "layerConfig")).map(({ path }) => path),
      []
    )
  })

  it("mention no type that cannot be imported", () => {
    const hidden = names.flatMap(({ hidden, path }) => hidden.map((type) => `${path} mentions ${type}`))
    assert.deepStrictEqual(hidden, [])
    // For those who check the declarations of their packages: nothing there refers to what was stripped as internal.
    assert.deepStrictEqual(dangling, [])
  })

  it("have doc comments", () => {
    const bare = [
      ...modules.filter(({ isDocumented }) => !isDocumented).map(({ path }) => path),
      ...names.filter(({ isDocumented }) => !isDocumented).map(({ path }) => path)
    ]
    assert.deepStrictEqual(bare, [])
  })

  it("say since when they are there, and where the reference lists them", () => {
    const contributing = readFileSync(".github/contributing/public-names.md", "utf8")
    const listed = /`@category`[^]*?\n\n((?:- `\w+`[^\n]*\n)+)/.exec(contributing)?.[1] ?? ""
    const categories = new Set(Array.from(listed.matchAll(/^- `(\w+)`/gm), ([, category = ""]) => category))
    const tagged = names.flatMap(({ path, tags }) => (tags === "module" ? [] : [{ path, tags }]))
    assert.isAbove(categories.size, 10)
    assert.isAbove(tagged.length, 500)
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string }
    const isNoLater = (since = "later") =>
      /^\d+\.\d+\.\d+$/.test(since) && since.localeCompare(version, "en", { numeric: true }) <= 0
    assert.deepStrictEqual(
      {
        since: [...modules, ...tagged].filter(({ tags }) => !isNoLater(tags.get("since"))).map(({ path }) => path),
        category: tagged.filter(({ tags }) => !categories.has(tags.get("category") ?? "")).map(({ path }) => path),
        unused: [...categories].filter((category) => !tagged.some(({ tags }) => tags.get("category") === category))
      },
      { since: [], category: [], unused: [] }
    )
  })
})
