/**
 * The terminal in other hands for a while: those of the shell that started the program, or of an editor of what is typed.
 * Mutable; every function is one step.
 *
 * | keys | do |
 * |---|---|
 * | ctrl-z | suspend |
 * | ctrl-g, ctrl-x ctrl-e | open an editor |
 */

/** Why the terminal was left: for the shell that started the program, or for an editor of this text. */
export type TerminalHandover = { readonly _tag: "Suspend" } | { readonly _tag: "Edit"; readonly text: string }

export interface Door<Target> {
  readonly departure: () => TerminalHandover | undefined
  /** Whose text an editor has. */
  readonly editing: () => Target | undefined
  /** What a key with ctrl, or none, wants. The first half of a chord is for nobody else. */
  readonly wish: (name: string, ctrl: boolean) => "Suspend" | "Edit" | "Half" | undefined
  readonly suspend: () => void
  readonly edit: (target: Target, text: string) => void
  readonly comeBack: () => void
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Nobody has left. Without `leaves` nobody can. */
export const make = <Target>(leaves: boolean): Door<Target> => {
  let departure: TerminalHandover | undefined
  let editing: Target | undefined
  /** Ctrl-X was pressed. */
  let isHalf = false
  return {
    departure: () => departure,
    editing: () => editing,
    wish: (name, ctrl) => {
      const isSecond = isHalf
      isHalf = false
      if (!leaves || !ctrl) return undefined
      if (name === "z") return "Suspend"
      isHalf = name === "x"
      if (isHalf) return "Half"
      return name === "g" || (name === "e" && isSecond) ? "Edit" : undefined
    },
    suspend: () => {
      departure = { _tag: "Suspend" }
    },
    edit: (target, text) => {
      departure = { _tag: "Edit", text }
      editing = target
    },
    comeBack: () => {
      departure = undefined
      editing = undefined
    }
  }
}
