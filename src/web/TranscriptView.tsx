/** What was said and done in a session, as rows: words, calls with their output and changes, remarks. */
import { useState } from "preact/hooks"
import { DiffView, TextDiff } from "./DiffView.js"
import { MarkdownView } from "./MarkdownView.js"
import type * as LiveTranscript from "./LiveTranscript.js"
import { VirtualList } from "./VirtualList.js"

export interface Props {
  readonly items: ReadonlyArray<LiveTranscript.Item>
  /** Changes whenever an item did. */
  readonly version: number
  readonly cancelCall: (id: string) => void
  /** Goes back to before the turn with this id. */
  readonly rewind: (turn: string) => void
  readonly fork: (turn: string) => void
}

export const TranscriptView = ({ cancelCall, fork, items, rewind }: Props) => (
  <VirtualList
    class="transcript"
    rows={items}
    keyOf={keyOf}
    guess={72}
    isTail
    role="log"
    label="What was said and done"
    draw={(item) => {
      switch (item.kind) {
        case "call":
          return <CallView call={item} cancel={cancelCall} />
        case "note":
          return <NoteView note={item} fork={fork} />
        default:
          return <SaidView said={item} rewind={rewind} />
      }
    }}
  />
)

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const keyOf = ({ key }: LiveTranscript.Item): string => key

const SaidView = ({
  rewind,
  said
}: {
  readonly said: LiveTranscript.Said
  readonly rewind: (turn: string) => void
}) => {
  const { agent, isOpen, kind, text, turn } = said
  if (kind === "user") {
    return (
      <div class="said user">
        <p class="pre">{text}</p>
        {turn !== undefined && turn !== "" && (
          <button
            type="button"
            class="plain small"
            onClick={() => rewind(turn)}
            title="Go back to before these words, in a fork"
          >
            Rewind
          </button>
        )}
      </div>
    )
  }
  if (kind === "thinking") {
    return (
      <details class="said thinking">
        <summary>
          {agent} thinks{isOpen ? "…" : ""}
        </summary>
        <p class="pre">{text}</p>
      </details>
    )
  }
  return (
    <div class="said">
      {agent.includes("/") && <p class="agent">{agent}</p>}
      <MarkdownView text={text} />
      {isOpen && <span class="caret" aria-hidden="true" />}
    </div>
  )
}

const NoteView = ({ fork, note }: { readonly note: LiveTranscript.Note; readonly fork: (turn: string) => void }) => {
  const { agent, text, tone, turn } = note
  if (text === "" && (turn === undefined || agent.includes("/"))) return null
  return (
    <div class={`note ${tone}`}>
      {text !== "" && (
        <p>
          {agent.includes("/") && <span class="agent">{agent} </span>}
          {text}
        </p>
      )}
      {turn !== undefined && !agent.includes("/") && (
        <button type="button" class="plain small" onClick={() => fork(turn)} title="Begin a new session from here">
          Fork here
        </button>
      )}
    </div>
  )
}

const signs: { readonly [outcome: string]: string } = { succeeded: "✓", failed: "✕", denied: "⊘" }

const CallView = ({ call, cancel }: { readonly call: LiveTranscript.Call; readonly cancel: (id: string) => void }) => {
  const [isOpen, setOpen] = useState<boolean>()
  const { agent, decision, duration, fault, key, outcome = "", output, state, summary, tool } = call
  const isEnded = state === "ended"
  const isShown = isOpen ?? state === "running"
  const tone = isEnded ? (outcome === "succeeded" && fault === undefined ? "good" : "bad") : state
  return (
    <div class={`call-row ${tone}`}>
      <div class="call-head">
        <button type="button" class="call-toggle" aria-expanded={isShown} onClick={() => setOpen(!isShown)}>
          <span class="sign" aria-hidden="true">
            {isEnded ? (fault === undefined ? (signs[outcome] ?? "✕") : "✕") : state === "asked" ? "?" : "•"}
          </span>
          <b>{tool}</b>
          <span class="call-summary">{summary}</span>
          <span class="call-state">{stateOf(call)}</span>
        </button>
        {state === "running" && (
          <button type="button" class="plain small" onClick={() => cancel(key)}>
            Cancel call
          </button>
        )}
      </div>
      {agent.includes("/") && <p class="agent">{agent}</p>}
      {isShown && (
        <div class="call-body">
          <Arguments args={call.args} />
          {decision !== undefined && (
            <p class="why">
              <b>{decision.granted ? "Allowed" : "Denied"}</b> {decision.by === undefined ? "" : `by ${decision.by} `}(
              {decision.method.replaceAll("_", " ")}) {decision.reason}
            </p>
          )}
          {output !== "" && (
            <pre class="output" tabIndex={0} role="region" aria-label="Output">
              {output}
            </pre>
          )}
          {isEnded && output === "" && <Result value={call.result} />}
          {isEnded && duration !== undefined && <p class="quiet">{(duration / 1_000).toFixed(1)} s</p>}
        </div>
      )}
    </div>
  )
}

const stateOf = ({ fault, outcome = "", state }: LiveTranscript.Call): string => {
  switch (state) {
    case "proposed":
      return "proposed"
    case "asked":
      return "waits for an answer"
    case "running":
      return "runs"
    case "ended":
      return fault ?? (outcome === "succeeded" ? "" : outcome)
  }
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const Arguments = ({ args }: { readonly args: unknown }) => {
  if (!isRecord(args)) return null
  const { content, new_text: after, old_text: before, ...rest } = args
  const names = Object.entries(rest)
  return (
    <>
      {names.length > 0 && (
        <dl class="arguments">
          {names.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>
              </dd>
            </div>
          ))}
        </dl>
      )}
      {typeof before === "string" && typeof after === "string" && <TextDiff before={before} after={after} />}
      {content !== undefined && (
        <pre class="call" tabIndex={0} role="region" aria-label="Content">
          {typeof content === "string" ? content : JSON.stringify(content, undefined, 2)}
        </pre>
      )}
    </>
  )
}

/** What the model reads of it; changes as rows. */
const Result = ({ value }: { readonly value: unknown }) => {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2)
  if (text === undefined || text === "" || text === "{}") return null
  if (/^(?:---|@@) /m.test(text) && text.includes("\n@@ ")) return <DiffView text={text} />
  return (
    <pre class="output" tabIndex={0} role="region" aria-label="Result">
      {text.length > 20_000 ? `${text.slice(0, 20_000)}…` : text}
    </pre>
  )
}
