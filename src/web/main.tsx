/**
 * The web console: one page over the HTTP API, in which a person sees every question of every session and answers it.
 *
 * ```
 *   PageState ─► signals ─► App ─► InboxView ─► RequestCard ─► FormView
 *       ▲                    └──► SessionView ─► TranscriptView, HistoryView, PolicyView
 *   LiveEvents, ServerCalls
 * ```
 */
import { render } from "preact"
import { useId, useState } from "preact/hooks"
import * as Attention from "./Attention.js"
import { InboxView } from "./InboxView.js"
import * as Keyboard from "./Keyboard.js"
import * as PageState from "./PageState.js"
import { Age } from "./RequestCard.js"
import { SessionView } from "./SessionView.js"
import { SignIn } from "./SignIn.js"
import { TrustNotice } from "./TrustNotice.js"

const App = () => (
  <>
    {PageState.client.value !== undefined ? (
      <Shell />
    ) : PageState.refusal.value === "" ? (
      <main id="main" class="view">
        <p class="quiet">Connecting…</p>
      </main>
    ) : (
      <SignIn />
    )}
    <Keyboard.Help />
    <Attention.Announcer />
  </>
)

const Shell = () => {
  const place = PageState.place.value
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        To the content
      </a>
      {PageState.connection.value === "lost" && (
        <p class="banner" role="status">
          The server has ended or cannot be reached. This page comes back by itself.
        </p>
      )}
      <div class={`shell ${place === "" ? "at-inbox" : ""}`}>
        <Side place={place} />
        <Place place={place} />
      </div>
    </>
  )
}

const skip = (event: Event) => {
  event.preventDefault()
  document.querySelector<HTMLElement>("#main [tabindex], #main button, #main input, #main a")?.focus()
}

const Place = ({ place }: { readonly place: string }) => {
  const [kind, id = "", tab] = place.split("/")
  if (kind === "session" && id !== "") {
    const known = decodeURIComponent(id)
    return <SessionView key={known} id={known} tab={tab === "history" || tab === "policy" ? tab : "talk"} />
  }
  if (kind === "sessions") return <SessionList />
  if (kind === "new") return <NewSession />
  return <InboxView />
}

const Side = ({ place }: { readonly place: string }) => {
  const count = PageState.open.value.length
  const at = (here: string) => (place === here ? { "aria-current": "page" as const } : {})
  return (
    <nav class="side" aria-label="Console">
      <h1>Assent</h1>
      <div class="links">
        <a href="#/" {...at("")}>
          Inbox {count > 0 && <span class="count">{count}</span>}
        </a>
        <a href="#/sessions" class="narrow" {...at("sessions")}>
          Sessions
        </a>
        <a href="#/new" {...at("new")}>
          New session
        </a>
      </div>
      <div class="wide">
        <h2>Sessions</h2>
        <SessionLinks place={place} />
      </div>
      <p class="foot quiet">
        {PageState.person.value} <Attention.NotifyButton />
      </p>
    </nav>
  )
}

const SessionLinks = ({ place }: { readonly place: string }) => (
  <ul class="sessions">
    {PageState.sessions.value.slice(0, 100).map(({ lastActivity, open, sessionId, status, title }) => {
      const path = `session/${encodeURIComponent(sessionId)}`
      return (
        <li key={sessionId}>
          <a href={`#/${path}`} {...(place.startsWith(path) ? { "aria-current": "page" as const } : {})}>
            <span class={`dot ${open.length > 0 ? "waiting" : status}`} aria-hidden="true" />
            <span class="title">{title === "" ? sessionId : title}</span>
            <span class="quiet">
              {open.length > 0 ? `${open.length} open` : status} · <Age since={lastActivity} />
            </span>
          </a>
        </li>
      )
    })}
  </ul>
)

const SessionList = () => (
  <main id="main" class="view">
    <header class="bar">
      <h2>Sessions</h2>
    </header>
    <div class="scrolls">
      {PageState.sessions.value.length === 0 ? (
        <div class="empty">
          <p class="large">No session yet.</p>
          <p>
            <a href="#/new">Begin one</a>
          </p>
        </div>
      ) : (
        <SessionLinks place="" />
      )}
    </div>
  </main>
)

const NewSession = () => {
  const workspaces = PageState.workspaces.value
  const [workspace, setWorkspace] = useState(workspaces[0] ?? "")
  const [model, setModel] = useState("")
  const [text, setText] = useState("")
  const [problem, setProblem] = useState("")
  const [isBusy, setBusy] = useState(false)
  const id = useId()
  const begin = async (event: Event) => {
    event.preventDefault()
    const client = PageState.client.value
    if (client === undefined || text.trim() === "") return
    setBusy(true)
    const made = await client.create({ workspace, ...(model.trim() === "" ? {} : { model: model.trim() }) })
    const sent = made.isOk
      ? await client.say(made.value.sessionId, { text: text.trim(), id: crypto.randomUUID() })
      : made
    setBusy(false)
    if (!sent.isOk) return setProblem(sent.failure.message)
    PageState.refresh()
    if (made.isOk) PageState.go(`session/${encodeURIComponent(made.value.sessionId)}`)
  }
  return (
    <main id="main" class="view">
      <header class="bar">
        <h2>New session</h2>
      </header>
      <form class="form padded" onSubmit={begin}>
        <div class="field">
          <label for={`${id}-t`}>What is to be done?</label>
          <textarea
            id={`${id}-t`}
            rows={4}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for={`${id}-w`}>Directory</label>
          <select id={`${id}-w`} value={workspace} onChange={({ currentTarget }) => setWorkspace(currentTarget.value)}>
            {workspaces.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </div>
        <TrustNotice workspace={workspace} />
        <div class="field">
          <label for={`${id}-m`}>
            Model <span class="optional">optional</span>
          </label>
          <input
            id={`${id}-m`}
            value={model}
            placeholder="PROVIDER/MODEL; else that of the settings"
            spellcheck={false}
            onInput={({ currentTarget }) => setModel(currentTarget.value)}
          />
        </div>
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="submit" class="yes" disabled={isBusy || text.trim() === ""}>
            Begin
          </button>
        </div>
      </form>
    </main>
  )
}

Keyboard.begin()
PageState.begin()
Attention.begin()
render(<App />, document.body)
