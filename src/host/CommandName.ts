/** The commands of the program, as help lists them. */
export const commandNames = [
  "chat",
  "run",
  "permissions",
  "profiles",
  "mcp",
  "sessions",
  "audit",
  "answer",
  "serve",
  "keys",
  "acp",
  "adopt",
  "doctor",
  "completion",
  "help"
] as const
export type CommandName = (typeof commandNames)[number]
