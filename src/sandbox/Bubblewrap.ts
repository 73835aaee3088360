/** The command line of bubblewrap for a {@link View}. A pure function, so that what is confined how can be read and tested. */
import * as View from "./View.js"

/** What holds the command's standard streams together with us; see {@link supervisor}. */
export interface Options {
  readonly view: View.View
  /** Where the command runs. */
  readonly directory: string
  /** Of the private temp directory, in bytes. */
  readonly tempSize: number
  /** An open file with a filter of system calls, where there is one. */
  readonly filter: number | undefined
  /** Added to the view's. */
  readonly environment: Readonly<Record<string, string>>
  readonly command: ReadonlyArray<string>
}

/** Everything behind the name of the program. */
export const args = ({ command, directory, environment, filter, tempSize, view }: Options): ReadonlyArray<string> => [
  // New namespaces of every kind; the command has no capability in them, also when we are root.
  ...["--unshare-all", "--unshare-user", "--cap-drop", "ALL"],
  ...(view.network ? ["--share-net"] : []),
  // It is the first process of its namespace: when it ends, the kernel ends all others before anybody learns of it.
  ...["--as-pid-1", "--die-with-parent", "--new-session"],
  ...["--hostname", "sandbox"],
  ...(filter === undefined ? [] : ["--seccomp", `${filter}`]),
  // Settings of the kernel are files of root's: who is root outside may write them, whatever namespace that is in.
  ...["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"],
  // What lies in memory is limited, wherever something can be written.
  ...["--perms", "1777", "--size", `${tempSize}`, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"],
  ...["--perms", "1777", "--size", `${tempSize}`, "--tmpfs", "/tmp"],
  ...["--dir", "/var", "--symlink", "../tmp", "/var/tmp"],
  ...(view.homeFrom === undefined ? ["--size", `${tempSize}`, "--tmpfs", view.home] : []),
  ...view.mounts.flatMap(mounted),
  ...(view.homeFrom === undefined ? [] : ["--bind", view.homeFrom, view.home]),
  // The tree that holds the mounts is not a place to write to.
  ...["--remount-ro", "/"],
  "--clearenv",
  ...Object.entries({ ...view.environment, ...environment }).flatMap(([name, value]) => ["--setenv", name, value]),
  ...["--chdir", directory, "--", ...command]
]

/**
 * The first process of the namespace, a shell. Its standard input is ours to let it begin: when we are gone before we said
 * so, it ends. Its standard error tells us that it is there and how the command ended, which the exit code alone does not:
 * a shell says in words that a signal ended something. Asked to terminate, it waits for what was asked with it: with its
 * own end the kernel kills everything else.
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

/** What `ready` stands for in what the supervisor prints. */
export const isReady = (told: string): boolean => /^ready$/m.test(told)

export interface Ended {
  readonly exitCode: number | null
  readonly signal?: string
}

/** How the command ended, by the supervisor's words; nothing when it had none, because it was killed itself. */
export const ended = (told: string): Ended | undefined => {
  const [, words = "", digits] = /^ready\n([\s\S]*?)^exit (\d+)$/m.exec(told) ?? []
  if (digits === undefined) return undefined
  const exitCode = Number(digits)
  const signal = signals[exitCode - 128]
  // Of an interrupt and a broken pipe shells say nothing.
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

/** By number, as on every machine that bubblewrap runs on and the filter knows. */
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
