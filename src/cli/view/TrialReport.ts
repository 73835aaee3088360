/** What a policy would have decided, for a person. */
import type * as PolicyTrial from "../../permission/PolicyTrial.js"
import { visible } from "../../audit/AuditReport.js"

/** One line for each change, and what was not told. */
export const lines = ({ changes, decisions, remarks, same, untold }: PolicyTrial.Trial): ReadonlyArray<string> => [
  `${calls(decisions)} in the audit: ${same} decided the same, ${sum(changes)} otherwise, ${sum(untold)} not told.`,
  ...changes.flatMap((change) => [
    visible(`${done[change.was]} -> ${change.would}  ${change.count}x  by ${change.rule}  (${toolsOf(change)})`),
    ...(change.would === "allow" && change.refused > 0
      ? [`  Careful: ${change.refused === change.count ? "all" : change.refused} of them were refused then.`]
      : [])
  ]),
  ...untold.map((group) => visible(`not told  ${group.count}x  ${group.why}  (${toolsOf(group)})`)),
  ...(decisions === 0 ? [] : remarks.map((remark) => `Note: ${remark}`))
]

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Counted = Pick<PolicyTrial.Change, "count" | "tools">

const done: { readonly [O in PolicyTrial.Outcome]: string } = { allow: "allowed", deny: "denied", ask: "asked" }

const sum = (groups: ReadonlyArray<Counted>): number => groups.reduce((all, { count }) => all + count, 0)

const calls = (count: number): string => `${count} ${count === 1 ? "call" : "calls"}`

/** The tools that were called most. */
const toolsOf = ({ tools }: Counted): string => {
  const shown = tools.slice(0, 5).map(([tool, count]) => (tools.length === 1 ? tool : `${tool} ${count}`))
  return [...shown, ...(tools.length > shown.length ? [`${tools.length - shown.length} more`] : [])].join(", ")
}
