import { assert, describe, it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import * as InternetAddress from "../../src/core/InternetAddress.js"

describe("an address of the open internet", () => {
  it.each(["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2001:4860:4860::8888"])("is %s", (address) =>
    assert.isTrue(InternetAddress.isPublic(address))
  )

  it.each([
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:1.1.1.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "4000::1",
    "",
    "localhost",
    "1.1.1.1 ",
    "example.com"
  ])("is not %j", (address) => assert.isFalse(InternetAddress.isPublic(address)))

  it("is none that begins like a private one, whatever follows", () => {
    const byte = fc.nat(255)
    const inside = fc.oneof(
      fc.tuple(fc.constant("10."), byte).map(([begin, a]) => `${begin}${a}`),
      fc.tuple(fc.constant("127."), byte).map(([begin, a]) => `${begin}${a}`),
      fc.integer({ min: 16, max: 31 }).map((a) => `172.${a}`),
      fc.constantFrom("192.168", "169.254")
    )
    fc.assert(
      fc.property(inside, byte, byte, (begin, a, b) => {
        const address = `${begin}.${a}.${b}`
        assert.isFalse(InternetAddress.isPublic(address))
        assert.isFalse(InternetAddress.isPublic(`::ffff:${address}`))
      })
    )
  })
})
