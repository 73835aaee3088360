/** The audit of a session: who decided what, when, by which rule, and what came of it; whole, or changed by somebody. */
import { useEffect, useState } from "preact/hooks"
import type * as Api from "../http/Api.js"
import type { Decided } from "../audit/AuditRecord.js"
import * as PageState from "./PageState.js"
import type { Transcript } from "./LiveTranscript.js"

export interface Props {
  readonly id: string
  readonly transcript: Transcript
  readonly version: number
}

export const HistoryView = ({ id, transcript }: Props) => {
  const [audit, setAudit] = useState<Api.SessionAudit>()
  const [refusal, setRefusal] = useState("")
  const client = PageState.client.value
  const read = () =>
    void client?.audit(id).then((answer) => {
      if (answer.isOk) setAudit(answer.value)
      else setRefusal(answer.failure.message)
    })
  const { decided } = transcript
  useEffect(() => {
    // Many decisions are read at once.
    const timer = setTimeout(read, audit === undefined ? 0 : 300)
    return () => clearTimeout(timer)
  }, [id, client, decided])
  if (refusal !== "") return <p class="warning">{refusal}</p>
  if (audit === undefined) return <p class="quiet">Reading…</p>
  const decisions = audit.records.filter(isDecided).reverse()
  return (
    <div class="history scrolls" tabIndex={0} role="region" aria-label="History">
      <div class={`verdict ${audit.verified}`}>
        <p>
          <b>{verdicts[audit.verified]}</b> {audit.verdict[0]}
        </p>
        {audit.verdict.slice(1).map((line) => (
          <p key={line} class="quiet">
            {line}
          </p>
        ))}
        <button type="button" class="plain small" onClick={read}>
          Read again
        </button>
      </div>
      <ol class="decisions">
        {decisions.map((decided) => (
          <Decision key={decided.seq} decided={decided} result={resultOf(decided, transcript)} />
        ))}
      </ol>
      {audit.before > 0 && (
        <p class="quiet">
          {audit.before} records before these: assent audit show {id}
        </p>
      )}
    </div>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

type Recorded = Decided & { readonly seq: number }

const isDecided = (record: unknown): record is Recorded =>
  typeof record === "object" && record !== null && "_tag" in record && record._tag === "Decided"

const verdicts = { whole: "Verified.", broken: "Not whole.", unknown: "Not verified." } as const

const Decision = ({ decided, result }: { readonly decided: Recorded; readonly result: string | undefined }) => {
  const { agent, answeredAt, by, how, kind, method, outcome, reason, tool, votes } = decided
  const at = new Date(answeredAt)
  return (
    <li>
      <time dateTime={at.toISOString()}>{at.toLocaleString()}</time>
      <p>
        <b class={outcome}>{outcome.replace("_", " ")}</b> <code>{tool ?? kind}</code>{" "}
        {by !== undefined && (
          <>
            by <b>{by}</b>
            {how !== undefined && how !== "answered" && ` (${how})`}
          </>
        )}{" "}
        <span class="quiet">for {agent}</span>
      </p>
      {(method !== undefined || reason !== undefined) && (
        <p class="quiet">{[method?.replaceAll("_", " "), reason].filter((part) => part !== undefined).join(": ")}</p>
      )}
      {votes !== undefined && <p class="quiet">{votes.map((one) => `${one.by}: ${one.vote}`).join(", ")}</p>}
      {result !== undefined && <p class="quiet">Result: {result}</p>}
    </li>
  )
}

const resultOf = ({ outcome, toolCallId }: Recorded, { calls }: Transcript): string | undefined => {
  const call = toolCallId === undefined || outcome === "voted" ? undefined : calls.get(toolCallId)
  if (call === undefined) return undefined
  const end = call.state === "ended" ? (call.fault ?? call.outcome) : call.state
  const { summary } = call
  return `${end ?? ""} · ${summary.length > 160 ? `${summary.slice(0, 160)}…` : summary}`
}
