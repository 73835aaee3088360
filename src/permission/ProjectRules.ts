/**
 * What a person allows in one workspace, in every session: entries as `always` remembers them, until they are taken back.
 * Only a person at a terminal of the program adds to them; no answer that comes over a wire can.
 */
import type * as Effect from "effect/Effect"

export interface ProjectRules {
  /** The file that holds them. */
  readonly file?: string | undefined
  /** The entries that hold now, oldest first. It is asked for each call that no rule before them decides. */
  readonly entries: () => ReadonlySet<string>
  /** Takes an entry back; fails with a sentence. */
  readonly revoke: (entry: string) => Effect.Effect<void, string>
}
