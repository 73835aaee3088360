/** What a policy forbids in the text of a command: shell metacharacters and dangerous programs. No file is looked at. */
import type { Violation } from "./PathScope.js"
import type * as PermissionRule from "./PermissionRule.js"
import * as Program from "../shell/Program.js"
import type { Options } from "./SanitizerOptions.js"

/** All violations of a call; none for a call that names no command. */
export const violations = (
  self: PermissionRule.Subject,
  { metacharacters, dangerousCommands }: Options
): ReadonlyArray<Violation> => {
  const { command } = self
  if (command === undefined) return []
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

/** The violations as one reason for a refusal. */
export const reason = (found: ReadonlyArray<Violation>): string => found.map(({ message }) => message).join(" ")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const dangerousPrograms: ReadonlySet<string> = new Set(
  [
    "sudo su doas pkexec shutdown reboot halt poweroff init rm rmdir mkfs dd shred",
    "curl wget nc netcat ncat ssh scp rsync ftp sftp kill killall pkill chmod chown chgrp mount umount"
  ].flatMap((line) => line.split(" "))
)
