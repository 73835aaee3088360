/**
 * Guards as data: what a call must not contain, even when a person allowed it.
 *
 * The policy chooses three: shell metacharacters, dangerous programs, and the path scope (on by default: a person is
 * asked about paths that lead outside the workspace, symbolic links followed). One is always on: no call names a
 * protected path, such as the directory of the policy itself.
 *
 * Paths are found in a tool's annotated path parameters and among the words of a command that no sandbox confines. They
 * keep an agent from straying and from rewriting its own rules in plain sight. The sandbox is the wall.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Program from "../shell/Program.js"
import * as PathScope from "./PathScope.js"
import type * as PermissionRule from "./PermissionRule.js"
import { concerns, fieldOf, scopeOf, type Options } from "./SanitizerOptions.js"

export { concerns, defaults, fieldOf, permissive, strict, type Options } from "./SanitizerOptions.js"

export type Violation = PathScope.Violation

export interface Surroundings {
  /** Absolute. Relative paths start here. */
  readonly workspace: string
  /** Absolute: the policy, store, audit and file-channel places. They and all they contain are out of reach. */
  readonly protectedPaths: ReadonlyArray<string>
  /**
   * The call's path parameters: each a path or a list of paths. For a command tool the first is the directory in which
   * the command runs.
   */
  readonly pathFields: ReadonlyArray<string>
  readonly options: Options
  /** The system's temp directories. Default: `/tmp`. */
  readonly temporary?: ReadonlyArray<string> | undefined
  /** The directory that `~` and `$HOME` mean, when known; otherwise both are outside of everything. */
  readonly home?: string | undefined
}

/** All violations of a call; none for a call that names neither a path nor a command. */
export const violations = (
  self: PermissionRule.Subject,
  surroundings: Surroundings
): Effect.Effect<ReadonlyArray<Violation>, never, FileSystem.FileSystem | Path.Path> => {
  if (!concerns(self, surroundings.pathFields)) return noViolations
  const shell = commandViolations(self, surroundings.options)
  // In a sandbox the kernel decides where paths may lead. What decides about calls is out of reach there too.
  const scoped = self.command === undefined || !self.confined
  const fields = surroundings.pathFields.flatMap((field) => fieldOf(self, field))
  const scope = PathScope.violations(
    {
      fields,
      mentions: self.command === undefined && surroundings.pathFields.length === 0 ? self.strings : [],
      command: self.command,
      confined: self.confined,
      reads: (words) => self.spoken?.reader.isHarmless(words) === true,
      line: self.line,
      started: self.started,
      targets: self.spoken?.reader.targets(self.spoken.command, self.line) ?? []
    },
    {
      ...surroundings,
      denied: self.call.denied,
      places: self.call.places,
      scope: scoped ? scopeOf(surroundings.options.pathScope) : undefined
    }
  )
  return shell.length === 0 ? scope : Effect.map(scope, (paths) => [...shell, ...paths])
}

/** The violations as one reason for a refusal. */
export const reason = (found: ReadonlyArray<Violation>): string => found.map(({ message }) => message).join(" ")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const noViolations: Effect.Effect<ReadonlyArray<Violation>> = Effect.succeed([])

/** What a policy forbids in the text of a command: shell metacharacters and dangerous programs. No file is looked at. */
const commandViolations = (
  self: PermissionRule.Subject,
  { metacharacters, dangerousCommands }: Options
): ReadonlyArray<Violation> => {
  const { command } = self
  const out: Array<Violation> = []
  if (metacharacters && command !== undefined) {
    const found = [...new Set(command.match(/[;|&`$(){}<>\n\r]/g) ?? [])]
    if (found.length > 0) {
      const shown = found.map((char) => (char === "\n" ? "a line end" : char === "\r" ? "a carriage return" : char))
      out.push({
        rule: "metacharacters",
        message: `The command contains ${shown.join(" ")}, which the policy forbids; run one plain command at a time.`
      })
    }
  }
  if (dangerousCommands === false) return out
  const { blocked = [], allowed = [] } = dangerousCommands === true ? {} : dangerousCommands
  const free = new Set(allowed)
  const more = new Set(blocked)
  const reported = new Set<string>()
  for (const program of new Set(self.started.map(({ words }) => words[0] ?? ""))) {
    const name = Program.basename(program)
    // Another spelling of a dangerous name is as dangerous: `mkfs.ext4`, `RM` where names ignore case.
    const known = [name, name.toLowerCase(), Program.nameOf(program), name.replace(/\..*$/, "")]
    const hit = known.find((candidate) => more.has(candidate) || dangerousPrograms.has(candidate))
    if (hit !== undefined && !known.some((candidate) => free.has(candidate)) && !reported.has(hit)) {
      reported.add(hit)
      out.push({ rule: "dangerous_command", message: `The program ${hit} is forbidden by the policy.` })
    }
  }
  return out
}

const dangerousPrograms: ReadonlySet<string> = new Set(
  [
    "sudo su doas pkexec shutdown reboot halt poweroff init rm rmdir mkfs dd shred",
    "curl wget nc netcat ncat ssh scp rsync ftp sftp kill killall pkill chmod chown chgrp mount umount"
  ].flatMap((line) => line.split(" "))
)
