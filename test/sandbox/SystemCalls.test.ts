import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import * as SystemCalls from "../../src/sandbox/SystemCalls.js"
import * as Runs from "../kit/Runs.js"

const x86 = 0xc000003e
const i386 = 0x40000003
const arm64 = 0xc00000b7
const allowed = "allowed"

/** Runs the program as the kernel does, on one call. */
const judge = (architecture: number, number: number, args: ReadonlyArray<number> = []): string => {
  const program = new DataView(SystemCalls.program().buffer)
  const data = new DataView(new ArrayBuffer(64))
  data.setUint32(0, number, true)
  data.setUint32(4, architecture, true)
  for (const [index, value] of args.entries()) data.setUint32(16 + 8 * index, value, true)
  let accumulator = 0
  for (let at = 0; at < program.byteLength / 8; at++) {
    const code = program.getUint16(at * 8, true)
    const [jt, jf, k] = [
      program.getUint8(at * 8 + 2),
      program.getUint8(at * 8 + 3),
      program.getUint32(at * 8 + 4, true)
    ]
    const holds = { 0x15: accumulator === k, 0x45: (accumulator & k) !== 0, 0x35: accumulator >= k }[code]
    if (holds !== undefined) at += holds ? jt : jf
    else if (code === 0x05) at += k
    else if (code === 0x20) accumulator = data.getUint32(k, true)
    else if (code === 0x06) return k === 0x7fff0000 ? allowed : `errno ${k & 0xffff}`
    else assert.fail(`an instruction that nobody knows: ${code}`)
  }
  return assert.fail("it ran off its end")
}

describe("SystemCalls", () => {
  const newUser = 0x10000000
  const table: ReadonlyArray<readonly [string, number, number, ReadonlyArray<number>, string]> = [
    ["read", x86, 0, [], allowed],
    ["execve", x86, 59, [], allowed],
    ["a thread", x86, 56, [0x3d0f00], allowed],
    ["a user namespace by clone", x86, 56, [newUser | 17], "errno 1"],
    ["a user namespace by unshare", x86, 272, [newUser], "errno 1"],
    ["a user namespace among others", x86, 272, [newUser | 0x20000], "errno 1"],
    ["clone3", x86, 435, [], "errno 38"],
    ["keyctl", x86, 250, [], "errno 38"],
    ["io_uring_setup", x86, 425, [], "errno 38"],
    ["mount", x86, 165, [], "errno 1"],
    ["setns", x86, 308, [], "errno 1"],
    ["a Unix socket", x86, 41, [1], allowed],
    ["an IPv6 socket", x86, 41, [10], allowed],
    ["netlink", x86, 41, [16], allowed],
    ["a socket to the hypervisor", x86, 41, [40], "errno 97"],
    ["a packet socket", x86, 41, [17], "errno 97"],
    ["a Bluetooth socket", x86, 41, [31], "errno 97"],
    ["chmod 755", x86, 90, [0, 0o755], allowed],
    ["chmod 2755", x86, 90, [0, 0o2755], allowed],
    ["chmod 4755", x86, 90, [0, 0o4755], "errno 1"],
    ["fchmodat 6755", x86, 268, [0, 0, 0o6755], "errno 1"],
    ["fchmodat2 4755", x86, 452, [0, 0, 0o4755], "errno 1"],
    ["open that creates", x86, 2, [0, 0o101, 0o644], allowed],
    ["open that creates with u+s", x86, 2, [0, 0o101, 0o4755], "errno 1"],
    ["open that does not create, with anything behind", x86, 2, [0, 0, 0o4755], allowed],
    ["openat of a nameless file with u+s", x86, 257, [0, 0, 0o20200002, 0o4755], "errno 1"],
    ["openat2", x86, 437, [], "errno 38"],
    ["mknod with u+s", x86, 133, [0, 0o104755], "errno 1"],
    ["typing into a terminal", x86, 16, [0, 0x5412], "errno 1"],
    ["another ioctl", x86, 16, [0, 0x5413], allowed],
    ["any call by the numbers of x32", x86, 0x40000000 | 41, [40], "errno 38"],
    ["socketcall", i386, 102, [], "errno 1"],
    ["a socket to the hypervisor, 32 bits", i386, 359, [40], "errno 97"],
    ["unshare, 32 bits", i386, 310, [newUser], "errno 1"],
    ["write, 32 bits", i386, 4, [], allowed],
    ["clone on arm", arm64, 220, [newUser], "errno 1"],
    ["a socket on arm", arm64, 198, [40], "errno 97"],
    ["fchmodat on arm", arm64, 53, [0, 0, 0o4755], "errno 1"],
    ["read on arm", arm64, 63, [], allowed],
    ["anything of 32 bits on arm", 0x40000028, 4, [], "errno 38"],
    ["a machine that is not in the table", 0xc00000f3, 198, [40], allowed]
  ]
  for (const [name, architecture, number, args, expected] of table) {
    it(name, () => {
      assert.strictEqual(judge(architecture, number, args), expected)
    })
  }

  it("comes to a decision about every call of every architecture", () => {
    const architecture = FastCheck.oneof(
      FastCheck.constantFrom(x86, i386, arm64, 0x40000028),
      FastCheck.nat(0xffffffff)
    )
    const word = FastCheck.nat(0xffffffff)
    FastCheck.assert(
      FastCheck.property(
        architecture,
        FastCheck.oneof(FastCheck.nat(500), word),
        FastCheck.array(word, { maxLength: 6 }),
        (a, n, args) => {
          assert.match(judge(a, n, args), /^allowed$|^errno (?:1|38|97)$/)
        }
      ),
      { numRuns: Runs.of(2_000) }
    )
  })
})
