/**
 * The command line of bubblewrap for a {@link View}. A pure function, so that the confinement can be read and tested.
 */
import * as View from "./View.js"

/** What holds the command's standard streams together with us; see {@link supervisor}. */
export interface Options {
  readonly view: View.View
  /** Where the command runs. */
  readonly directory: string
  /** The size of the private temp directory, in bytes. */
  readonly tempSize: number
  /** An open file with a filter of system calls, where there is one. */
  readonly filter: number | undefined
  /** Added to the view's environment. */
  readonly environment: Readonly<Record<string, string>>
  readonly command: ReadonlyArray<string>
  /** A directory outside that is at {@link sharedPlace} inside. */
  readonly shared?: string | undefined
}

/** Where a command finds the directory that it shares with us: a name that no workspace has. */
export const sharedPlace = "/.assent-shared"

/** All arguments behind the name of the program. */
export const args = ({
  command,
  directory,
  environment,
  filter,
  shared,
  tempSize,
  view
}: Options): ReadonlyArray<string> => [
  // New namespaces of every kind; the command has no capability in them, also when we are root.
  ...["--unshare-all", "--unshare-user", "--cap-drop", "ALL"],
  ...(view.network ? ["--share-net"] : []),
  // The supervisor is the first process of its namespace: when it ends, the kernel ends all others before anybody
  // learns of it.
  ...["--as-pid-1", "--die-with-parent", "--new-session"],
  ...["--hostname", "sandbox"],
  ...(filter === undefined ? [] : ["--seccomp", `${filter}`]),
  // Kernel settings are files of root: a process that is root outside may write them from any namespace.
  ...["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"],
  // Memory file systems are limited in size wherever something can be written.
  ...["--perms", "1777", "--size", `${tempSize}`, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
  ...["--perms", "1777", "--size", `${tempSize}`, "--tmpfs", "/tmp"],
  ...["--dir", "/var", "--symlink", "../tmp", "/var/tmp"],
  ...(view.homeFrom === undefined ? ["--size", `${tempSize}`, "--tmpfs", view.home] : []),
  ...view.mounts.flatMap(mounted),
  ...(view.homeFrom === undefined ? [] : ["--bind", view.homeFrom, view.home]),
  ...(shared === undefined ? [] : ["--bind", shared, sharedPlace]),
  // The tree that holds the mounts is read-only.
  ...["--remount-ro", "/"],
  "--clearenv",
  ...Object.entries({ ...view.environment, ...environment }).flatMap(([name, value]) => ["--setenv", name, value]),
  ...["--chdir", directory, "--", ...command]
]

/**
 * The first process of the namespace, a shell. Its standard input lets it begin: if we are gone before that, it ends.
 * Its standard error reports that it has started and how the command ended. The exit code alone does not tell that; a
 * shell prints words when a signal ended something. When it is asked to terminate, it waits for the processes that were
 * asked with it, because its own end kills everything else.
 */
export const supervisor = (limits: string): string =>
  [
    "asked=",
    "trap 'asked=1' TERM",
    "echo ready >&2",
    "read -r go || exit 125",
    ...(limits === "" ? [] : [limits]),
    '(exec "$@" </dev/null 2>&1)',
    "code=$?",
    'while [ -n "$asked" ] && kill -s 0 -- -1 2>/dev/null; do sleep 0.05; done',
    'echo "exit $code" >&2',
    "exit $code"
  ].join("\n")

/** The supervisor has printed `ready`. */
export const isReady = (told: string): boolean => /^ready$/m.test(told)

export interface Ended {
  readonly exitCode: number | null
  readonly signal?: string
}

/** How the command ended, by the supervisor's words; nothing when it was killed before it could print any. */
export const ended = (told: string): Ended | undefined => {
  const [, words = "", digits] = /^ready\n([\s\S]*?)^exit (\d+)$/m.exec(told) ?? []
  if (digits === undefined) return undefined
  const exitCode = Number(digits)
  const signal = signals[exitCode - 128]
  // Shells print no words for an interrupt or a broken pipe.
  const bySignal = words.trim() !== "" || signal === "SIGINT" || signal === "SIGPIPE"
  return signal !== undefined && bySignal ? { exitCode: null, signal } : { exitCode }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const mounted = (mount: View.Mount): ReadonlyArray<string> => {
  switch (mount._tag) {
    case "ReadOnly":
      return ["--ro-bind", mount.from ?? mount.path, mount.path]
    case "Writable":
      return ["--bind", mount.from ?? mount.path, mount.path]
    case "Link":
      return ["--symlink", mount.target, mount.path]
    case "Hidden":
      return mount.kind === "file"
        ? ["--ro-bind", "/dev/null", mount.path]
        : ["--perms", "0555", "--tmpfs", mount.path, "--remount-ro", mount.path]
  }
}

/** Signals by number: the same on every machine that bubblewrap and the filter support. */
const signals: { readonly [number: number]: string } = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  4: "SIGILL",
  5: "SIGTRAP",
  6: "SIGABRT",
  7: "SIGBUS",
  8: "SIGFPE",
  9: "SIGKILL",
  10: "SIGUSR1",
  11: "SIGSEGV",
  12: "SIGUSR2",
  13: "SIGPIPE",
  14: "SIGALRM",
  15: "SIGTERM",
  24: "SIGXCPU",
  25: "SIGXFSZ",
  31: "SIGSYS"
}
