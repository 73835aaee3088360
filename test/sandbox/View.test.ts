import { assert, describe, it } from "@effect/vitest"
import * as FastCheck from "fast-check"
import * as Bubblewrap from "../../src/sandbox/Bubblewrap.js"
import * as SeatbeltProfile from "../../src/sandbox/SeatbeltProfile.js"
import * as View from "../../src/sandbox/View.js"

const view = (mounts: ReadonlyArray<View.Mount>): View.View =>
  View.make({ mounts, roots: ["/w"], home: "/home/assent", homeFrom: "/state/home", network: false, environment: {} })

const writable = (path: string): View.Mount => ({ _tag: "Writable", path })
const readOnly = (path: string): View.Mount => ({ _tag: "ReadOnly", path })

describe("View", () => {
  it("makes a mount of every directory between a writable place and what is protected in it", () => {
    assert.deepStrictEqual(view([writable("/w"), readOnly("/w/a/b/.git/hooks"), writable("/w/a/b/.git")]).mounts, [
      writable("/w"),
      writable("/w/a"),
      writable("/w/a/b"),
      writable("/w/a/b/.git"),
      readOnly("/w/a/b/.git/hooks")
    ])
  })

  it("makes nothing writable by that", () => {
    assert.deepStrictEqual(
      view([writable("/w"), readOnly("/w/.assent"), { _tag: "Hidden", path: "/w/.assent/a/b", kind: "file" }]).mounts,
      [writable("/w"), readOnly("/w/.assent"), { _tag: "Hidden", path: "/w/.assent/a/b", kind: "file" }]
    )
  })

  it("leaves out what is seen already", () => {
    assert.deepStrictEqual(
      view([readOnly("/usr"), readOnly("/usr/local/bin"), writable("/usr/src/w"), readOnly("/usr/src/w/x")]).mounts,
      [readOnly("/usr"), writable("/usr/src/w"), readOnly("/usr/src/w/x")]
    )
  })

  it("mounts nothing in a directory that is hidden", () => {
    const hidden = { _tag: "Hidden", path: "/w/s", kind: "directory" } as const
    assert.deepStrictEqual(
      view([
        writable("/w"),
        { _tag: "Hidden", path: "/w/s/sessions.db", kind: "file" },
        readOnly("/w/s/a/.git/hooks"),
        writable("/w/s/a/.git"),
        hidden,
        readOnly("/w/sb")
      ]).mounts,
      [writable("/w"), hidden, readOnly("/w/sb")]
    )
  })

  const name = FastCheck.constantFrom("a", "b", ".git", "hooks")
  const path = FastCheck.array(name, { minLength: 1, maxLength: 5 }).map((names) => `/${names.join("/")}`)
  const mount = FastCheck.oneof(path.map(writable), path.map(readOnly))

  it("lays every mount after what it lies in, and lets none of its directories be renamed away", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(mount, { maxLength: 8 }), (mounts) => {
        const laid = view(mounts).mounts
        const asked = new Map(mounts.map((one) => [one.path, one]))
        for (const [index, one] of laid.entries()) {
          for (const other of laid.slice(0, index))
            assert.isFalse(View.isWithin(one.path, other.path) && one.path !== other.path)
          // What nobody asked for is writable only in a place that somebody asked to be.
          if (asked.has(one.path)) assert.deepStrictEqual(one, asked.get(one.path))
          else {
            const above = laid.filter((other) => other.path !== one.path && View.isWithin(other.path, one.path)).at(-1)
            assert.strictEqual(above?._tag, "Writable")
          }
          const parent = one.path.slice(0, one.path.lastIndexOf("/"))
          const above = laid.filter((other) => other.path !== one.path && View.isWithin(other.path, one.path)).at(-1)
          if (above?._tag === "Writable") assert.strictEqual(above.path, parent)
        }
      })
    )
  })
})

describe("Bubblewrap", () => {
  const args = (network: boolean) =>
    Bubblewrap.args({
      view: {
        ...view([
          readOnly("/usr"),
          { _tag: "Link", path: "/lib", target: "usr/lib" },
          writable("/w"),
          { _tag: "Hidden", path: "/w/s", kind: "directory" }
        ]),
        network
      },
      directory: "/w/d",
      tempSize: 1_000,
      filter: 9,
      environment: { A: "b c" },
      command: ["/bin/sh", "-c", "true"]
    }).join(" ")

  it("is written in one order: namespaces, devices, mounts, environment, command", () => {
    assert.strictEqual(
      args(false),
      "--unshare-all --unshare-user --cap-drop ALL --as-pid-1 --die-with-parent --new-session --hostname sandbox " +
        "--seccomp 9 --proc /proc --remount-ro /proc --dev /dev --perms 1777 --size 1000 --tmpfs /dev/shm --remount-ro /dev " +
        "--perms 1777 --size 1000 --tmpfs /tmp --dir /var --symlink ../tmp /var/tmp " +
        "--ro-bind /usr /usr --symlink usr/lib /lib --bind /w /w --perms 0555 --tmpfs /w/s --remount-ro /w/s " +
        "--bind /state/home /home/assent --remount-ro / " +
        "--clearenv --setenv A b c --chdir /w/d -- /bin/sh -c true"
    )
  })

  it("shares the network only when it is to", () => {
    assert.notInclude(args(false), "--share-net")
    assert.include(args(true), "--share-net")
  })

  const words: ReadonlyArray<readonly [string, Bubblewrap.Ended | undefined]> = [
    ["ready\nexit 0\n", { exitCode: 0 }],
    ["ready\nexit 137\n", { exitCode: 137 }],
    ["ready\nKilled\nexit 137\n", { exitCode: null, signal: "SIGKILL" }],
    ['ready\nsh: line 1:     5 Terminated   ( exec "$@" )\nexit 143\n', { exitCode: null, signal: "SIGTERM" }],
    ["ready\nexit 130\n", { exitCode: null, signal: "SIGINT" }],
    ["ready\nexit 255\n", { exitCode: 255 }],
    ["ready\n", undefined],
    ["bwrap: something\n", undefined]
  ]
  for (const [told, expected] of words) {
    it(`takes ${JSON.stringify(told)} for what it says`, () => {
      assert.deepStrictEqual(Bubblewrap.ended(told), expected)
    })
  }
})

describe("SeatbeltProfile", () => {
  const profile = (network: boolean, git = true) =>
    SeatbeltProfile.make({
      roots: ["/Users/me/my (own).project"],
      home: "/state/home",
      temp: "/private/tmp/t",
      readable: ["/Users/me/.cargo/bin"],
      hidden: ["/Users/me/my (own).project/secret"],
      readOnly: ["/Users/me/my (own).project/policy.json"],
      network,
      git
    })

  it("lets one command change the directory that it shares, also where others see nothing", () => {
    const options = {
      roots: ["/w"],
      home: "/state/home",
      temp: "/t",
      readable: [],
      readOnly: [],
      network: false,
      git: false
    }
    const rules = SeatbeltProfile.make({ ...options, hidden: ["/state"], shared: "/state/askpass" }).split("\n")
    const at = (rule: string) => rules.findIndex((one) => one === rule)
    const hidden = at('(deny file-read* file-write* (subpath "/state"))')
    assert.isAtLeast(hidden, 0)
    assert.isAbove(at('(allow file-read* file-write* (subpath "/state/askpass"))'), hidden)
  })

  it("denies by default, and says in order what is allowed and what is not", () => {
    assert.strictEqual(
      profile(false).replace(/^\(allow file-read\* \(subpath "\/usr".*$/m, "(system)"),
      `(version 1)
(deny default)
(allow process-fork process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem ipc-posix-shm)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(system)
(allow file-read* (literal "/") (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-write* (subpath "/Users/me/my (own).project") (subpath "/state/home") (subpath "/private/tmp/t"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[hH][eE][aA][dD]$"))
(allow file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.]git/(.*/)?HEAD$"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][aA][sS][sS][eE][nN][tT](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][jJ][aA][aA][tT][oO](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][gG][iI][tT]$"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][hH][gG](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][jJ][jJ](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][sS][vV][nN](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][bB][zZ][rR](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/_[dD][aA][rR][cC][sS](/|$)"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][gG][iI][tT]/(.*/)?(config|config[.]worktree|commondir|gitdir)([.]lock)?$"))
(deny file-write* (regex #"^/Users/me/my \\(own\\)\\.project(/.*)?/[.][gG][iI][tT]/(.*/)?(hooks|info)(/|$)"))
(deny file-write* (subpath "/Users/me/my (own).project/policy.json"))
(deny file-read* file-write* (subpath "/Users/me/my (own).project/secret"))
(allow network* (local ip "localhost:*"))
(allow network-outbound (remote ip "localhost:*"))
`
    )
  })

  it("lets git alone write a git directory", () => {
    const whole = '/[.][gG][iI][tT](/|$)"))'
    assert.notInclude(profile(false, true), whole)
    assert.include(profile(false, false), whole)
  })

  it("opens the network only when it is to be", () => {
    assert.notInclude(profile(false), "(allow network*)\n")
    assert.include(profile(true), "(allow network*)\n")
  })
})
