/** Rules that reserve calls, in words. */
import type * as Interaction from "../interaction/Interaction.js"
import * as NeedText from "../interaction/NeedText.js"
import type * as Approvals from "./Approvals.js"
import * as PermissionRule from "./PermissionRule.js"

/** For people: what is demanded, and by which rules. */
export const describe = (all: ReadonlyArray<Interaction.Need>): string =>
  `${NeedText.describeAll(all)} (${[...new Set(all.map(({ rule }) => rule))].join(", ")})`

/** One line for each rule, for people. */
export const list = (approvals: Approvals.Approvals): ReadonlyArray<string> =>
  approvals.map(({ need, rules }) => {
    const members = need.members.length === 0 ? "" : ` (${need.members.join(", ")})`
    const deny = need.deny === "quorum" && need.quorum > 1 ? "; as many have to deny" : ""
    return `${PermissionRule.describe(rules).join(", ")}: ${NeedText.describe(need)}${members}${deny}`
  })
