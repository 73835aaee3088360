/**
 * Guards as data: what a call must not contain, even when a person allowed it.
 *
 * The policy chooses three guards: shell metacharacters, dangerous programs, and the path scope (on by default: paths
 * stay inside the workspace, symbolic links followed). One is always on: no call names a protected path, such as the
 * directory of the policy itself.
 *
 * Paths are found in a tool's annotated path parameters and, for a command, among its words and redirections. It cannot
 * stop a program that finds files by itself (`grep -r x .`, `git clean`, an archiver, a script's own code), a name put
 * together while the command runs (`$a$b`, `printf`, base64), or a change between the check and the execution. It keeps
 * an agent from straying and from rewriting its own rules in plain sight; it is no sandbox.
 */
import type * as FileSystem from "@effect/platform/FileSystem"
import type * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as PathScope from "./PathScope.js"
import type * as PermissionRule from "./PermissionRule.js"
import * as Program from "../shell/Program.js"
import { concerns, fieldOf, type Options } from "./SanitizerOptions.js"

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
  /** The directories that `allowTmp` allows. Default: `/tmp`. */
  readonly temporary?: ReadonlyArray<string> | undefined
  /** The directory that `~` and `$HOME` mean, when known; otherwise both are outside of everything. */
  readonly home?: string | undefined
}

const dangerousPrograms: ReadonlySet<string> = new Set(
  [
    "sudo su doas pkexec shutdown reboot halt poweroff init rm rmdir mkfs dd shred",
    "curl wget nc netcat ncat ssh scp rsync ftp sftp kill killall pkill chmod chown chgrp mount umount"
  ].flatMap((line) => line.split(" "))
)

/** All violations of a call; none for a call that names neither a path nor a command. */
export const violations = (
  self: PermissionRule.Subject,
  surroundings: Surroundings
): Effect.Effect<ReadonlyArray<Violation>, never, FileSystem.FileSystem | Path.Path> => {
  if (!concerns(self, surroundings.pathFields)) return noViolations
  const shell = self.command === undefined ? [] : shellViolations(self, self.command, surroundings.options)
  const { pathScope } = surroundings.options
  const scope = PathScope.violations(
    {
      fields: surroundings.pathFields.flatMap((field) => fieldOf(self, field)),
      command: self.command,
      line: self.line,
      readings: self.readings
    },
    { ...surroundings, scope: pathScope === true ? {} : pathScope === false ? undefined : pathScope }
  )
  return shell.length === 0 ? scope : Effect.map(scope, (paths) => [...shell, ...paths])
}

/** The violations that a command's text shows, without a look at files. */
export const ofCommand = (self: PermissionRule.Subject, options: Options): ReadonlyArray<Violation> =>
  self.command === undefined ? [] : shellViolations(self, self.command, options)

/** The violations as one reason for a refusal. */
export const reason = (found: ReadonlyArray<Violation>): string => found.map(({ message }) => message).join(" ")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const noViolations: Effect.Effect<ReadonlyArray<Violation>> = Effect.succeed([])

const shellViolations = (
  self: PermissionRule.Subject,
  command: string,
  { metacharacters, dangerousCommands }: Pick<Options, "metacharacters" | "dangerousCommands">
): ReadonlyArray<Violation> => {
  const out: Array<Violation> = []
  if (metacharacters) {
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
  if (self.line === undefined) {
    out.push({
      rule: "dangerous_command",
      message: "Malformed command: which programs it runs cannot be told. Write it as simple commands."
    })
  }
  const { blocked = [], allowed = [] } = dangerousCommands === true ? {} : dangerousCommands
  const free = new Set(allowed)
  const more = new Set(blocked)
  const reported = new Set<string>()
  const seen = new Set<string>()
  const look = (program: string, isFirst: boolean): void => {
    const name = Program.basename(program)
    // The operand of `npm init` is no program.
    if (seen.has(name) || (!isFirst && name === "init")) return
    seen.add(name)
    // Another spelling of a dangerous name is as dangerous: `mkfs.ext4`, `RM` where names ignore case.
    const known = [name, name.toLowerCase(), Program.nameOf(program), name.replace(/\..*$/, "")]
    const hit = known.find((candidate) => more.has(candidate) || dangerousPrograms.has(candidate))
    if (hit !== undefined && !known.some((candidate) => free.has(candidate)) && !reported.has(hit)) {
      reported.add(hit)
      out.push({ rule: "dangerous_command", message: `The program ${hit} is forbidden by the policy.` })
    }
  }
  for (const { deep, named, words } of self.readings) {
    const [program = ""] = words
    look(program, true)
    if (!named) {
      const message = `Which program ${program} is cannot be told before it runs; name it.`
      out.push({ rule: "dangerous_command", message })
    }
    if (deep) for (let at = 1; at < words.length; at++) look(words[at] ?? "", false)
  }
  return out
}
