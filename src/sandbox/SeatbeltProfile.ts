/**
 * The profile of macOS's `sandbox-exec` for the commands of a workspace. A pure function; untried on a Mac by its authors.
 *
 * Seatbelt knows paths, not mounts: what the Linux sandbox does by a mount is a rule here, and the last rule that
 * matches a path decides. The loopback is the machine's: commands reach the services that listen there.
 */

export interface Options {
  /** Where commands may write, the workspace first; absolute, without links. */
  readonly roots: ReadonlyArray<string>
  /** The private home and temp directory. */
  readonly home: string
  readonly temp: string
  /** Visible paths beside the system. */
  readonly readable: ReadonlyArray<string>
  readonly hidden: ReadonlyArray<string>
  readonly readOnly: ReadonlyArray<string>
  readonly network: boolean
  /** The command may write in `.git`. */
  readonly git: boolean
  /** A directory that this command alone may change too, also in a hidden one. */
  readonly shared?: string | undefined
}

export const make = ({ git, hidden, home, network, readable, readOnly, roots, shared, temp }: Options): string =>
  [
    "(version 1)",
    "(deny default)",
    "(allow process-fork process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow ipc-posix-sem ipc-posix-shm)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
    "(allow file-read-metadata)",
    `(allow file-read* ${[...system, ...readable, ...roots, home, temp].map(subpath).join(" ")})`,
    '(allow file-read* (literal "/") (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))',
    '(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))',
    `(allow file-write* ${[...roots, home, temp].map(subpath).join(" ")})`,
    // Without a HEAD no directory is git's own by its shape.
    ...roots.map((root) => `(deny file-write* (regex #"^${quoted(root)}(/.*)?/[hH][eE][aA][dD]$"))`),
    ...roots.map((root) => `(allow file-write* (regex #"^${quoted(root)}(/.*)?/[.]git/(.*/)?HEAD$"))`),
    // Acting names are denied at any place, in any case, also before they exist.
    ...roots.flatMap((root) =>
      [...acting, ...(git ? [] : ["[.][gG][iI][tT](/|$)"])].map(
        (name) => `(deny file-write* (regex #"^${quoted(root)}(/.*)?/${name}"))`
      )
    ),
    ...readOnly.map((file) => `(deny file-write* ${subpath(file)})`),
    ...hidden.map((file) => `(deny file-read* file-write* ${subpath(file)})`),
    ...(shared === undefined ? [] : [`(allow file-read* file-write* ${subpath(shared)})`]),
    ...(network
      ? ["(allow network*)", '(allow mach-lookup (global-name "com.apple.trustd"))']
      : ['(allow network* (local ip "localhost:*"))', '(allow network-outbound (remote ip "localhost:*"))'])
  ].join("\n") + "\n"

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const system = [
  "/usr",
  "/bin",
  "/sbin",
  "/System",
  "/Library/Apple",
  "/Library/Developer",
  "/Library/Frameworks",
  "/Library/Java",
  "/Applications/Xcode.app",
  "/opt/homebrew",
  "/private/etc/ssl",
  "/private/etc/hosts",
  "/private/etc/passwd",
  "/private/etc/resolv.conf",
  "/private/var/db/timezone",
  "/private/var/db/dyld",
  "/private/var/select"
]

/** A `.git` itself cannot be moved or replaced, because renaming is writing; new ones cannot be made. */
const acting = [
  "[.][aA][sS][sS][eE][nN][tT](/|$)",
  "[.][jJ][aA][aA][tT][oO](/|$)",
  "[.][gG][iI][tT]$",
  "[.][hH][gG](/|$)",
  "[.][jJ][jJ](/|$)",
  "[.][sS][vV][nN](/|$)",
  "[.][bB][zZ][rR](/|$)",
  "_[dD][aA][rR][cC][sS](/|$)",
  "[.][gG][iI][tT]/(.*/)?(config|config[.]worktree|commondir|gitdir)([.]lock)?$",
  "[.][gG][iI][tT]/(.*/)?(hooks|info)(/|$)"
]

const subpath = (file: string): string => `(subpath ${JSON.stringify(file)})`

const quoted = (file: string): string => file.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll('"', '\\"')
