/** One session: what was said and done, live, with its agents, todos, jobs and cost, and everything that steers it. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type * as Api from "../http/Api.js"
import { HistoryView } from "./HistoryView.js"
import * as LiveEvents from "./LiveEvents.js"
import * as PageState from "./PageState.js"
import { PolicyView } from "./PolicyView.js"
import { RequestCard } from "./RequestCard.js"
import { Transcript } from "./LiveTranscript.js"
import { TranscriptView } from "./TranscriptView.js"
import { TrustNotice } from "./TrustNotice.js"

/** Words that a rewind took back, for the composer of the fork. */
let takenBack: { readonly sessionId: string; readonly words: string } | undefined

export const SessionView = ({ id, tab }: { readonly id: string; readonly tab: "talk" | "history" | "policy" }) => {
  const [transcript] = useState(() => new Transcript())
  const [version, setVersion] = useState(0)
  const [snapshot, setSnapshot] = useState<Api.SessionSnapshot>()
  const [refusal, setRefusal] = useState("")
  const client = PageState.client.value

  useEffect(() => {
    if (client === undefined) return undefined
    let isHere = true
    let frame = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        void client.session(id).then((answer) => {
          if (isHere && answer.isOk) setSnapshot(answer.value)
        })
      }, 300)
    }
    const draw = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0
        setVersion((before) => before + 1)
      })
    }
    void client.session(id).then((answer) => {
      if (!isHere) return
      if (answer.isOk) setSnapshot(answer.value)
      else setRefusal(answer.failure.message)
    })
    const end = LiveEvents.follow({
      path: `/sessions/${encodeURIComponent(id)}/events`,
      token: client.token,
      state: () => {},
      refused: (_, message) => setRefusal(message),
      take: (pieces) => {
        for (const piece of pieces) {
          if (piece.event === "snapshot") transcript.clear()
          if (piece.event === "failed") PageState.say(piece.data.message, true)
          if (piece.event !== "message") continue
          transcript.take(piece.data)
          if (looks.has(piece.data._tag)) look()
        }
        draw()
      }
    })
    return () => {
      isHere = false
      cancelAnimationFrame(frame)
      clearTimeout(timer)
      end()
    }
  }, [id, client])

  if (refusal !== "") {
    return (
      <main id="main" class="view">
        <p class="warning">{refusal}</p>
        <p>
          <a href="#/">Back to the inbox</a>
        </p>
      </main>
    )
  }
  const title = snapshot?.title === undefined || snapshot.title === "" ? id : snapshot.title
  const to = `#/session/${encodeURIComponent(id)}`
  return (
    <main id="main" class="view session">
      <header class="bar">
        <h2>{title}</h2>
        <nav class="tabs" aria-label="Views of this session">
          {tabs.map(([name, path, words]) => (
            <a key={name} href={`${to}${path}`} {...(name === tab ? { "aria-current": "page" as const } : {})}>
              {words}
            </a>
          ))}
        </nav>
      </header>
      {snapshot?.wantsTrust && snapshot.workspace !== undefined && <TrustNotice workspace={snapshot.workspace} />}
      {tab === "history" && <HistoryView id={id} transcript={transcript} version={version} />}
      {tab === "policy" && <PolicyView id={id} />}
      {tab === "talk" && <Talk id={id} transcript={transcript} version={version} snapshot={snapshot} />}
    </main>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const tabs = [
  ["talk", "", "Session"],
  ["history", "/history", "History"],
  ["policy", "/policy", "Policy"]
] as const

/** Events after which the snapshot is another one. */
const looks: ReadonlySet<string> = new Set([
  "TurnStarted",
  "TurnEnded",
  "ModelCallEnded",
  "AgentCreated",
  "AgentCompleted",
  "PermissionStatusChanged",
  "JobStarted",
  "JobEnded"
])

interface TalkProps {
  readonly id: string
  readonly transcript: Transcript
  readonly version: number
  readonly snapshot: Api.SessionSnapshot | undefined
}

const Talk = ({ id, snapshot, transcript, version }: TalkProps) => {
  const client = PageState.client.value
  const asked = PageState.requests.value.filter(({ sessionId }) => sessionId === id)
  const [target, setTarget] = useState("")
  const [isAside, setAside] = useState(false)

  const done = async (
    work: Promise<{ readonly isOk: boolean; readonly failure?: { readonly message: string } }> | undefined,
    words: string
  ) => {
    const answer = await work
    if (answer === undefined) return
    PageState.say(answer.isOk ? words : (answer.failure?.message ?? ""), !answer.isOk)
  }
  const turnOf = async (correlationId: string) => {
    const answer = await client?.turns(id)
    if (answer?.isOk !== true) return undefined
    return answer.value.turns.find((turn) => turn.correlationId === correlationId)?.number
  }
  const forkAt = async (turn: number | undefined, isRewind: boolean) => {
    if (turn === undefined) return PageState.say("This turn is not stored.", true)
    const answer = await client?.fork(id, turn)
    if (answer === undefined) return undefined
    if (!answer.isOk) return PageState.say(answer.failure.message, true)
    const { sessionId, words } = answer.value
    if (isRewind) takenBack = { sessionId, words }
    PageState.say(isRewind ? "You are in a fork. The other session stays as it is." : "You are in the fork.")
    PageState.refresh()
    return PageState.go(`session/${encodeURIComponent(sessionId)}`)
  }
  const rewind = (correlation: string) =>
    void turnOf(correlation).then((turn) => forkAt(turn === undefined ? undefined : turn - 1, true))
  const fork = (correlation: string) => void turnOf(correlation).then((turn) => forkAt(turn, false))

  return (
    <div class="talk">
      <div class="column">
        <TranscriptView
          items={transcript.items}
          version={version}
          cancelCall={(toolCallId) => void done(client?.interrupt(id, { toolCallId }), "The call was cancelled.")}
          rewind={rewind}
          fork={fork}
        />
        {asked.length > 0 && (
          <section class="asked" aria-label="Open questions of this session">
            {asked.slice(0, 5).map((one) => (
              <RequestCard
                key={one.request.requestId}
                asked={one}
                isFocused={false}
                isMarked={false}
                isLinked={false}
                focus={() => {}}
                mark={undefined}
              />
            ))}
            {asked.length > 5 && <a href="#/">{asked.length - 5} more in the inbox</a>}
          </section>
        )}
        <Composer id={id} isRunning={transcript.isRunning} target={target} clear={() => setTarget("")} done={done} />
      </div>
      <button
        type="button"
        class="plain small aside-toggle"
        aria-expanded={isAside}
        aria-controls="aside"
        onClick={() => setAside(!isAside)}
      >
        {isAside ? "Hide details" : "Details"}
      </button>
      <aside id="aside" class={isAside ? "shown" : ""} aria-label="State of this session">
        <State
          id={id}
          snapshot={snapshot}
          transcript={transcript}
          done={done}
          target={target}
          choose={(path) => setTarget(path === target ? "" : path)}
        />
      </aside>
    </div>
  )
}

type Done = (
  work: Promise<{ readonly isOk: boolean; readonly failure?: { readonly message: string } }> | undefined,
  words: string
) => Promise<void>

const Composer = (props: {
  readonly id: string
  readonly isRunning: boolean
  readonly target: string
  readonly clear: () => void
  readonly done: Done
}) => {
  const { clear, done, id, isRunning, target } = props
  const client = PageState.client.value
  const [text, setText] = useState(() => (takenBack?.sessionId === id ? takenBack.words : ""))
  const element = useRef<HTMLTextAreaElement>(null)
  // Before the next key: it belongs to these words.
  useLayoutEffect(() => {
    if (takenBack?.sessionId !== id) return
    takenBack = undefined
    element.current?.focus()
  }, [])
  const send = async (delivery: "steer" | "queue") => {
    const words = text.trim()
    if (words === "" || client === undefined) return
    setText("")
    // The same words under the same id are taken once.
    const body = { text: words, id: crypto.randomUUID(), ...(target === "" ? { delivery } : { target }) }
    const answer = await client.say(id, body)
    if (answer.isOk)
      return PageState.say(isRunning ? (delivery === "queue" ? "Queued." : "Sent to the running turn.") : "Sent.")
    // Nothing that a person wrote is lost.
    setText((now) => (now === "" ? words : now))
    PageState.say(answer.failure.message, true)
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send("steer")
      }}
    >
      {target !== "" && (
        <p class="quiet">
          To {target}{" "}
          <button type="button" class="plain small" onClick={clear}>
            To the session
          </button>
        </p>
      )}
      <textarea
        ref={element}
        rows={Math.min(10, Math.max(2, text.split("\n").length))}
        aria-label="Words for the agent"
        placeholder={isRunning ? "Steer the running turn…" : "What is to be done?"}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void send("steer")
        }}
      />
      <div class="actions">
        {isRunning && (
          <>
            <button
              type="button"
              class="no"
              onClick={() => void done(client?.interrupt(id, {}), "The turn was cancelled.")}
            >
              Cancel turn
            </button>
            <button
              type="button"
              class="plain"
              disabled={text.trim() === "" || target !== ""}
              onClick={() => void send("queue")}
            >
              Queue
            </button>
          </>
        )}
        <button type="submit" class="yes" disabled={text.trim() === ""}>
          {isRunning ? "Steer" : "Send"}
        </button>
      </div>
    </form>
  )
}

const modes = ["ask", "plan", "allow", "deny"] as const

const State = (props: {
  readonly id: string
  readonly snapshot: Api.SessionSnapshot | undefined
  readonly transcript: Transcript
  readonly done: Done
  readonly target: string
  readonly choose: (path: string) => void
}) => {
  const { choose, done, id, snapshot, target, transcript } = props
  const client = PageState.client.value
  const [models, setModels] = useState<ReadonlyArray<string>>([])
  const agents = [...transcript.agents.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
  const jobs = [...transcript.jobs.values()]
  const mode = transcript.mode ?? snapshot?.mode ?? ""
  const model = snapshot?.model ?? ""
  const { cost } = snapshot ?? {}
  const readModels = () => {
    if (models.length > 0) return
    void client?.models(id).then((answer) => {
      if (answer.isOk) setModels(answer.value.models)
      else PageState.say(answer.failure.message, true)
    })
  }
  return (
    <>
      <section>
        <h3>Session</h3>
        <div class="field">
          <label for="mode">Mode</label>
          <select
            id="mode"
            value={mode}
            onChange={({ currentTarget }) => {
              const chosen = modes.find((one) => one === currentTarget.value)
              if (chosen !== undefined) void done(client?.setMode(id, chosen), `Mode: ${chosen}.`)
            }}
          >
            {mode === "" && <option value="">not running</option>}
            {modes.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </div>
        {transcript.suspension !== undefined && <p class="warning">Asks nothing: {transcript.suspension}</p>}
        <div class="field">
          <label for="model">Model</label>
          <select
            id="model"
            value={model}
            onFocus={readModels}
            onPointerDown={readModels}
            onChange={({ currentTarget }) =>
              void done(client?.setModel(id, currentTarget.value), `Model: ${currentTarget.value}.`).then(
                PageState.refresh
              )
            }
          >
            {[...new Set([model, ...models])].map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </div>
        <div class="actions start">
          <button
            type="button"
            class="plain small"
            onClick={() => void done(client?.compact(id), "The conversation was made shorter.")}
          >
            Compact
          </button>
          <button
            type="button"
            class="plain small"
            onClick={() => {
              if (!window.confirm("Delete this session and all that was said in it?")) return
              void client?.remove(id).then((answer) => {
                if (!answer.isOk) return PageState.say(answer.failure.message, true)
                PageState.refresh()
                return PageState.go("")
              })
            }}
          >
            Delete
          </button>
        </div>
      </section>
      {agents.length > 0 && (
        <section>
          <h3>Agents</h3>
          <ul class="tree">
            {agents.map(({ context, path, profile, status }) => (
              <li key={path} style={{ paddingInlineStart: `${(path.split("/").length - 1) * 14}px` }}>
                <button type="button" class="agent-row" aria-pressed={target === path} onClick={() => choose(path)}>
                  <span class={`dot ${status}`} aria-hidden="true" />
                  <span>{path.split("/").at(-1)}</span>
                  <span class="quiet">
                    {profile === undefined ? "" : `${profile} · `}
                    {status}
                  </span>
                </button>
                {context !== undefined && <ContextUse {...context} />}
              </li>
            ))}
          </ul>
        </section>
      )}
      {transcript.todos.length > 0 && (
        <section>
          <h3>Todo</h3>
          <ul class="todos">
            {transcript.todos.map(({ content, status }, at) => (
              <li key={at} class={status}>
                <span aria-hidden="true">{status === "completed" ? "☑" : status === "in_progress" ? "▸" : "☐"}</span>
                <span class="unseen">{status.replace("_", " ")}: </span>
                {content}
              </li>
            ))}
          </ul>
        </section>
      )}
      {jobs.length > 0 && (
        <section>
          <h3>Jobs</h3>
          <ul class="jobs">
            {jobs.map(({ command, end, id: job }) => (
              <li key={job}>
                <code>{command}</code> <span class="quiet">{end ?? "runs"}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {cost !== undefined && (
        <section>
          <h3>Cost</h3>
          <p>
            {cost.inputTokens.toLocaleString()} tokens in, {cost.outputTokens.toLocaleString()} out
            {cost.amount !== undefined && ` · ${cost.amount.toFixed(2)} ${cost.currency ?? ""}`}
          </p>
        </section>
      )}
      {snapshot?.workspace !== undefined && (
        <section>
          <h3>Workspace</h3>
          <p class="path">{snapshot.workspace}</p>
        </section>
      )}
    </>
  )
}

const ContextUse = ({ tokens, window }: { readonly tokens: number; readonly window?: number | undefined }) => {
  const share = window === undefined ? undefined : Math.min(1, tokens / window)
  return (
    <div class="context">
      {share !== undefined && <meter min={0} max={1} high={0.8} value={share} aria-label="Context" />}
      <span class="quiet">
        context {tokens.toLocaleString()}
        {share === undefined ? "" : ` · ${Math.round(share * 100)} %`}
      </span>
    </div>
  )
}
