import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as DeniedPaths from "../../src/core/DeniedPaths.js"

const denies = (glob: string, path: string): boolean => DeniedPaths.find(DeniedPaths.make([glob]), path) !== undefined

describe("a denied path", () => {
  it.each([
    [".env", ".env", true],
    [".env", "sub/.env", false],
    [".env", ".env.example", false],
    [".env", ".ENV", true],
    ["./.env", ".env", true],
    [".//.env ", ".env", true],
    ["**/.env", ".env", true],
    ["**/.env", "a/b/.env", true],
    ["secrets/**", "secrets/a/b", true],
    ["secrets/**", "secrets", true],
    ["secrets/", "secrets/a", true],
    ["secrets", "secrets/a/b", true],
    ["secrets/**", "secretsx", false],
    ["secrets/**", "a/secrets", false],
    ["*.pem", "a.pem", true],
    ["*.pem", "a/b.pem", false],
    ["**/*.pem", "a/b/c.PEM", true],
    ["a/*/c", "a/b/c/d", true],
    ["a/*/c", "a/c", false],
    ["{a,b/c}.key", "b/c.key", true],
    ["[[:upper:]]x", "Ax", true],
    ["[!a-z]x", "Ax", true],
    ["caf\u00e9", "cafe\u0301", true],
    ["*", ".hidden", true],
    ["**", "anything/at/all", true]
  ] as const)("%s, at %s: %s", (glob, path, is) => {
    assert.isUndefined(DeniedPaths.problem(glob))
    assert.strictEqual(denies(glob, path), is)
  })

  it("that can match nothing is refused, with the nearest right spelling", () => {
    for (const [glob, words] of [
      ["/secrets/key", "Did you mean secrets/key?"],
      ["~/.ssh", "Did you mean .ssh?"],
      ["file:///etc/x", "Did you mean etc/x?"],
      ["C:\\keys", "begins at the workspace's root"],
      ["../x/.env", "Did you mean x/.env?"],
      ["a/../.env", "Did you mean .env?"],
      ["!.env", "Did you mean .env?"],
      ["secrets\\key", "Did you mean secrets/key?"],
      [".", "the whole workspace"],
      ["./", "the whole workspace"],
      ["a\0b", "zero character"],
      ["{a,b}".repeat(7), "alternatives"]
    ] as const)
      assert.include(DeniedPaths.problem(glob) ?? "", words, glob)
  })

  it("is denied with all that is below, and the way to it is walked", () => {
    const name = FastCheck.constantFrom("a", "b", "Secret", ".env", "k.pem", "x y")
    const part = FastCheck.oneof(name, FastCheck.constantFrom("*", "**", "*.pem", "?", "[ab]", "{a,b}", "S*", "a**"))
    const glob = FastCheck.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
    const path = FastCheck.array(name, { minLength: 1, maxLength: 5 })
    FastCheck.assert(
      FastCheck.property(glob, path, name, (glob, names, more) => {
        const denied = DeniedPaths.make([glob])
        const at = (length: number) => names.slice(0, length).join("/")
        const isDenied = DeniedPaths.find(denied, at(names.length)) !== undefined
        if (!isDenied) return
        assert.isDefined(DeniedPaths.find(denied, `${at(names.length)}/${more}`))
        for (let length = 0; length < names.length; length++) {
          if (DeniedPaths.find(denied, at(length)) !== undefined) break
          assert.isTrue(DeniedPaths.mayHold(denied, at(length)), `${glob} below ${at(length)}`)
        }
      }),
      { numRuns: 2_000 }
    )
  })
})
