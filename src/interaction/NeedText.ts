/** What rules demand for a reserved call, in words. It is apart from `Needs` because only who tells a person has to load it. */
import type { Need, Voted } from "./Needs.js"

/** What a rule demands, for people: `needs 2 of: ops`. */
export const describe = ({ quorum, roles }: Pick<Need, "quorum" | "roles">): string => {
  if (roles.length > 0) return `needs ${quorum} of: ${roles.join(", ")}`
  return quorum === 1 ? "needs a person" : `needs ${quorum} people`
}

/** Like {@link describe}, for all rules. */
export const describeAll = (all: ReadonlyArray<Pick<Need, "quorum" | "roles">>): string =>
  [...new Set(all.map(describe))].join(", ")

/** What is missing yet: `1 more of: ops`. */
export const describeMissing = (lacking: ReadonlyArray<Pick<Need, "quorum" | "roles">>): string =>
  [
    ...new Set(
      lacking.map(({ quorum, roles }) => `${quorum} more${roles.length === 0 ? "" : ` of: ${roles.join(", ")}`}`)
    )
  ].join(", ")

/** Who has voted, for people; nothing when nobody has. */
export const describeVotes = (votes: ReadonlyArray<Voted>): string | undefined =>
  votes.length === 0 ? undefined : votes.map(({ by, vote }) => `${by} ${words[vote]}`).join(", ")

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const words: { readonly [V in Voted["vote"]]: string } = {
  allow: "allowed it",
  deny: "denied it",
  edit: "wants other arguments"
}
