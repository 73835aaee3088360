/**
 * One open request: who asks, what for, why, what an answer would mean, and what it takes to answer. Every kind has its own
 * controls; the frame around them is the same.
 */
import type { ComponentChildren } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { ApproveOption } from "../interaction/ApproveAnswer.js"
import type { Failure } from "./ServerCalls.js"
import { DiffView } from "./DiffView.js"
import { FormView } from "./FormView.js"
import { MarkdownView, WebLink } from "./MarkdownView.js"
import * as PageState from "./PageState.js"

type Interaction = PageState.Asked["request"]["interaction"]
type OfKind<K extends Interaction["_tag"]> = Extract<Interaction, { readonly _tag: K }>

/** What keys do to the card in focus. */
export type Command = "allow" | "deny" | "comment" | "edit" | "always"

export interface Props {
  readonly asked: PageState.Asked
  readonly isFocused: boolean
  readonly isMarked: boolean
  readonly focus: () => void
  readonly mark: (() => void) | undefined
  /** False on the page of the session itself. */
  readonly isLinked?: boolean
}

/** Does to the card of this request what a key wants: once, and now. */
export const perform = (requestId: string, command: Command): void => handlers.get(requestId)?.(command)

/** Whether the request is an approval that can be marked with others of its tool. */
export const toolOf = ({ request: { interaction } }: PageState.Asked): string | undefined =>
  interaction._tag === "Approve" ? interaction.tool : undefined

export const RequestCard = (props: Props) => {
  const { asked, focus, isFocused, isLinked = true, isMarked, mark } = props
  const { request } = asked
  const { agentPath, interaction, issuedAt, origin, requestId } = request
  const ended = PageState.settled.value.get(requestId)
  const element = useRef<HTMLElement>(null)
  const id = useId()

  // Before the next key: a focus that comes after it would move the reader back.
  useLayoutEffect(() => {
    const active = document.activeElement
    const isFree = active === null || active === document.body || active.closest("article.card") !== null
    if (isFocused && isFree && !element.current?.contains(active)) element.current?.focus({ preventScroll: true })
  }, [isFocused])

  return (
    <article
      ref={element}
      class={`card ${isLinked ? "" : "keyless"} ${isFocused ? "focused" : ""} ${ended === undefined ? "" : "ended"}`}
      tabIndex={isFocused ? 0 : -1}
      aria-labelledby={`${id}-t`}
      data-request={requestId}
      onFocusIn={focus}
      onPointerDown={focus}
    >
      <header>
        {mark !== undefined && (
          <label class="mark" title="Mark (x)">
            <input
              type="checkbox"
              checked={isMarked}
              onChange={mark}
              aria-label="Mark this question"
              tabIndex={isFocused ? 0 : -1}
            />
          </label>
        )}
        <h3 id={`${id}-t`}>{titleOf(interaction)}</h3>
        <p class="who">
          <span class="agent">{agentPath}</span>
          {isLinked && (
            <a href={`#/session/${encodeURIComponent(asked.sessionId)}`} tabIndex={isFocused ? 0 : -1}>
              {asked.title === undefined || asked.title === "" ? asked.sessionId : asked.title}
            </a>
          )}
          <Age since={issuedAt} />
        </p>
      </header>
      <Badges asked={asked} />
      {origin !== undefined && <p class="origin">Asked by {origin}, through the agent.</p>}
      {ended === undefined ? (
        asked.answeredBy === undefined ? (
          <Controls {...props} />
        ) : (
          <p class="quiet">Answered by {asked.answeredBy}. The answer counts when the session goes on.</p>
        )
      ) : (
        <>
          <Body interaction={interaction} />
          <p class={`outcome ${ended.isLate ? "late" : ""}`}>{ended.text}</p>
        </>
      )}
    </article>
  )
}

/** How long ago, in the largest unit. */
export const Age = ({ since }: { readonly since: number }) => {
  const seconds = Math.max(0, Math.round((PageState.now.value - since) / 1_000))
  return (
    <time dateTime={new Date(since).toISOString()} title={new Date(since).toLocaleString()}>
      {spanOf(seconds)}
    </time>
  )
}

const spanOf = (seconds: number): string => {
  if (seconds < 10) return "now"
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** What each card in the page does with a key. */
const handlers = new Map<string, (command: Command) => void>()

const useCommands = (requestId: string, handle: (command: Command) => void): void =>
  // Before the next key: a key that follows means what the card shows.
  useLayoutEffect(() => {
    handlers.set(requestId, handle)
    return () => void handlers.delete(requestId)
  })

const titleOf = (interaction: Interaction): string => {
  switch (interaction._tag) {
    case "Approve":
      return interaction.tool === plan ? "Begin with this plan?" : `Allow ${interaction.tool}?`
    case "grantStageTool":
      return `Grant ${interaction.tool} for this step?`
    case "approveSubagentEnvelope":
      return "Let a subagent use tools unasked?"
    case "Clarify":
      return interaction.questions.length === 1 ? "A question" : `${interaction.questions.length} questions`
    case "Ask":
    case "Select":
    case "Confirm":
      return "A question"
    case "Elicit":
      return "A form"
    case "Auth.DeviceCode":
      return "Sign in elsewhere"
    case "Auth.Password":
      return "A password"
  }
}

/** The tool that ends plan mode. */
const plan = "propose_plan"

const Badges = ({ asked: { holder, request } }: { readonly asked: PageState.Asked }) => {
  const { batch, interaction } = request
  const badges: Array<readonly [string, string]> = []
  if (interaction._tag === "Approve") {
    if (interaction.tool === plan) badges.push(["held", "The agent waits with its work until you decide"])
    if (interaction.needs !== undefined) badges.push(["votes", "Several people decide"])
    if (interaction.onceOnly === true) badges.push(["", "For this call only"])
    if (interaction.delegated === true) badges.push(["", "A model may decide this, too"])
  }
  if (batch !== undefined) badges.push(["", `${batch.index} of ${batch.of}`])
  if (request.once === true) badges.push(["", "Lost when the server ends"])
  // A question that is lost with its server is asked by that server.
  else if (holder === undefined) badges.push(["", "Nobody runs this session: your answer lets it go on"])
  if (badges.length === 0) return null
  return (
    <ul class="badges">
      {badges.map(([name, text]) => (
        <li key={text} class={name}>
          {text}
        </li>
      ))}
    </ul>
  )
}

/** What the request is about, without controls. */
const Body = ({ interaction }: { readonly interaction: Interaction }) => {
  switch (interaction._tag) {
    case "Approve":
      return <CallBody approve={interaction} />
    case "grantStageTool":
      return (
        <>
          <pre class="call" tabIndex={0}>
            {interaction.argsSummary}
          </pre>
          {interaction.reason !== undefined && <p>{interaction.reason}</p>}
        </>
      )
    case "approveSubagentEnvelope":
      return (
        <>
          <p>{interaction.promptSummary}</p>
          <p class="quiet">
            {interaction.subagentId} with {interaction.model.providerId}/{interaction.model.modelId}, depth{" "}
            {interaction.depth}
          </p>
          <ul class="tools">
            {interaction.requestedEnvelope.map((tool) => (
              <li key={tool}>
                <code>{tool}</code>
              </li>
            ))}
          </ul>
        </>
      )
    case "Auth.DeviceCode":
      return (
        <p>
          Open <WebLink href={interaction.url} /> and enter <code class="code">{interaction.code}</code>
        </p>
      )
    case "Auth.Password":
    case "Ask":
    case "Select":
    case "Confirm":
      return <p>{interaction.prompt}</p>
    case "Clarify":
      return <p>{interaction.context}</p>
    case "Elicit":
      return <p>{interaction.title}</p>
  }
}

const CallBody = ({ approve }: { readonly approve: OfKind<"Approve"> }) => {
  const { argumentsCut, argumentsSummary, display } = approve
  const summary = display?.summary ?? argumentsSummary
  const details = display?.details
  const isRepeated = details !== undefined && (summary === details || summary.endsWith(details))
  return (
    <>
      {!isRepeated && <p class="summary">{summary}</p>}
      {details !== undefined && <Details text={details} format={display?.format} />}
      {details === undefined && display?.summary !== undefined && (
        <pre class="call" tabIndex={0}>
          {argumentsSummary}
        </pre>
      )}
      {display?.truncated === true && <p class="warning">Not all of it is shown.</p>}
      {argumentsCut !== undefined && argumentsCut.length > 0 && (
        <p class="warning">Too long to be shown whole: {argumentsCut.join(", ")}.</p>
      )}
      {display?.warnings?.map((warning) => (
        <p key={warning} class="warning">
          {warning}
        </p>
      ))}
    </>
  )
}

const Details = ({ format, text }: { readonly text: string; readonly format: string | undefined }) => {
  if (format === "diff") return <DiffView text={text} />
  if (format === "markdown") return <MarkdownView text={text} />
  return (
    <pre class="call" tabIndex={0}>
      {text}
    </pre>
  )
}

const Controls = (props: Props) => {
  const { asked } = props
  const { interaction, requestId } = asked.request
  switch (interaction._tag) {
    case "Approve":
      return <Approval {...props} approve={interaction} />
    case "grantStageTool":
      return <Granting {...props} interaction={interaction} outcomes={["deny", "defer", "approve"]} />
    case "approveSubagentEnvelope":
      return <Granting {...props} interaction={interaction} outcomes={["deny", "approve"]} />
    case "Auth.DeviceCode":
      return (
        <>
          <Body interaction={interaction} />
          <Deadline at={interaction.expiresAt} />
          <Buttons asked={asked} withdraw>
            <Act yes run={() => PageState.answer(requestId, { answer: "completed" }, "Signed in")}>
              I have signed in
            </Act>
          </Buttons>
        </>
      )
    case "Auth.Password":
      return <Password asked={asked} prompt={interaction.prompt} />
    default:
      return asked.form === undefined ? (
        <p class="warning">This question has no form. Answer it at a terminal.</p>
      ) : (
        <FormView
          form={asked.form}
          submit="Send answer"
          send={(form) => PageState.answer(requestId, { form }, "Answered")}
        >
          <Act run={() => PageState.cancel(requestId)}>Cancel</Act>
        </FormView>
      )
  }
}

const Approval = (props: Props & { readonly approve: OfKind<"Approve"> }) => {
  const { approve, asked, isFocused } = props
  const { requestId } = asked.request
  const [state, setState] = useState<"plain" | "commenting" | "editing" | "confirming" | "more">("plain")
  const option = (full: string): ApproveOption | undefined => approve.options.find((one) => one.full === full)
  const give = (answer: unknown, words: string) => PageState.answer(requestId, { answer }, words)
  const isPlan = approve.tool === plan
  const always = option("always")
  const isOffered = { always: always !== undefined, edit: asked.form !== undefined && option("edit") !== undefined }
  const scopes = approve.options.filter(({ full }) => ["turn", "idle", "never", "all"].includes(full))
  const remembered = (
    <p class="quiet">
      <b>always</b> remembers <code>{approve.approvalKey}</code> for this session.
    </p>
  )

  useCommands(requestId, (command) => {
    switch (command) {
      case "allow":
        if (option("yes") !== undefined) void give("yes", "Allowed")
        return
      case "deny":
        return void give("no", "Denied")
      case "comment":
        return setState("commenting")
      case "edit":
        return isOffered.edit ? setState("editing") : PageState.say("The arguments of this call cannot be edited.")
      case "always":
        if (!isOffered.always) return PageState.say("Assent asks about each of these calls: there is no always.")
        if (state === "confirming") return void give("always", "Allowed, and remembered for this session")
        setState("confirming")
        return PageState.say(`Press a again to allow this and remember ${approve.approvalKey}.`)
    }
  })

  if (state === "editing" && asked.form !== undefined) {
    return (
      <>
        <Body interaction={approve} />
        <FormView
          form={asked.form}
          isEditor
          autoFocus
          submit="Allow as edited"
          send={(form) => PageState.answer(requestId, { form }, "Allowed as edited")}
          leave={() => setState("plain")}
        />
        <p class="quiet">Assent checks the edited call again, and may ask again.</p>
      </>
    )
  }
  if (state === "commenting") {
    return (
      <>
        <Body interaction={approve} />
        <Comment
          leave={() => setState("plain")}
          send={(comment) =>
            give({ decision: "deny", scope: "once", ...(comment === "" ? {} : { comment }) }, "Denied with words")
          }
        />
      </>
    )
  }
  return (
    <>
      <Body interaction={approve} />
      {approve.needs !== undefined && <Votes asked={asked} needs={approve.needs} />}
      <Why asked={asked} isFocused={isFocused} />
      {isFocused && isOffered.always && state !== "confirming" && remembered}
      {state === "confirming" ? (
        <>
          {remembered}
          <Buttons asked={asked}>
            <Act run={async () => setState("plain")}>Back</Act>
            <Act yes run={() => give("always", "Allowed, and remembered for this session")} autoFocus>
              Yes, always
            </Act>
          </Buttons>
        </>
      ) : (
        <Buttons asked={asked}>
          <Act run={() => give("no", "Denied")} key_="n">
            {isPlan ? "Do not begin" : "Deny"}
          </Act>
          <Act run={async () => setState("commenting")} key_="c">
            {isPlan ? "Send back with words" : "Deny with words"}
          </Act>
          {isOffered.edit && (
            <Act run={async () => setState("editing")} key_="e">
              Edit
            </Act>
          )}
          {isOffered.always && (
            <Act run={async () => setState("confirming")} key_="a">
              Always
            </Act>
          )}
          {scopes.length > 0 && (
            <Act run={async () => setState(state === "more" ? "plain" : "more")} isOpen={state === "more"}>
              More
            </Act>
          )}
          {option("yes") !== undefined && (
            <Act yes run={() => give("yes", "Allowed")} key_="y">
              {isPlan ? "Begin" : approve.needs === undefined ? "Allow" : "Vote to allow"}
            </Act>
          )}
        </Buttons>
      )}
      {state === "more" && (
        <ul class="scopes">
          {scopes.map(({ description, full }) => (
            <li key={full}>
              <Act run={() => give(full, full === "never" ? "Denied, and remembered" : `Allowed: ${full}`)}>{full}</Act>
              <span>{description}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

const Granting = (
  props: Props & {
    readonly interaction: OfKind<"grantStageTool" | "approveSubagentEnvelope">
    readonly outcomes: ReadonlyArray<"approve" | "deny" | "defer">
  }
) => {
  const { asked, interaction, outcomes } = props
  const { requestId } = asked.request
  const [note, setNote] = useState("")
  const id = useId()
  const give = (outcome: "approve" | "deny" | "defer") =>
    PageState.answer(requestId, { answer: { outcome, ...(note === "" ? {} : { note }) } }, words[outcome])
  useCommands(requestId, (command) => {
    if (command === "allow") void give("approve")
    if (command === "deny") void give("deny")
  })
  return (
    <>
      <Body interaction={interaction} />
      <div class="field">
        <label for={id}>
          Note <span class="optional">optional</span>
        </label>
        <input id={id} value={note} onInput={({ currentTarget }) => setNote(currentTarget.value)} />
      </div>
      <Buttons asked={asked}>
        {outcomes.map((outcome) => (
          <Act key={outcome} yes={outcome === "approve"} run={() => give(outcome)} key_={keys[outcome]}>
            {labels[outcome]}
          </Act>
        ))}
      </Buttons>
    </>
  )
}

const words = { approve: "Allowed", deny: "Denied", defer: "Deferred" } as const
const labels = { approve: "Allow", deny: "Deny", defer: "Later" } as const
const keys = { approve: "y", deny: "n", defer: undefined } as const

const Password = ({ asked, prompt }: { readonly asked: PageState.Asked; readonly prompt: string }) => {
  const [failure, setFailure] = useState<Failure>()
  const element = useRef<HTMLInputElement>(null)
  const id = useId()
  const submit = async (event: Event) => {
    event.preventDefault()
    const { current } = element
    if (current === null || current.value === "") return
    const given = current.value
    current.value = ""
    setFailure(await PageState.answer(asked.request.requestId, { answer: given }, "Sent"))
  }
  return (
    <form class="form" onSubmit={submit}>
      <div class="field">
        <label for={id}>{prompt}</label>
        <input id={id} ref={element} type="password" autocomplete="off" />
        {failure !== undefined && (
          <p class="problem" role="alert">
            {failure.message}
          </p>
        )}
      </div>
      <div class="actions">
        <Act run={() => PageState.cancel(asked.request.requestId)}>Cancel</Act>
        <button type="submit" class="yes">
          Send
        </button>
      </div>
    </form>
  )
}

const Comment = ({
  leave,
  send
}: {
  readonly leave: () => void
  readonly send: (text: string) => Promise<unknown>
}) => {
  const [text, setText] = useState("")
  const element = useRef<HTMLTextAreaElement>(null)
  const id = useId()
  useLayoutEffect(() => element.current?.focus(), [])
  const submit = (event: Event) => {
    event.preventDefault()
    void send(text.trim())
  }
  return (
    <form class="form" onSubmit={submit}>
      <div class="field">
        <label for={id}>Tell the agent why, and what to do instead</label>
        <textarea
          id={id}
          ref={element}
          rows={2}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) submit(event)
            if (event.key === "Escape") leave()
          }}
        />
      </div>
      <div class="actions">
        <button type="button" class="plain" onClick={leave}>
          Back
        </button>
        <button type="submit" class="no">
          Deny
        </button>
      </div>
    </form>
  )
}

const Votes = ({
  asked,
  needs
}: {
  readonly asked: PageState.Asked
  readonly needs: NonNullable<OfKind<"Approve">["needs"]>
}) => {
  const lacking = PageState.missing.value.get(asked.request.requestId) ?? asked.missing
  const votes = asked.votes ?? needs.votes
  return (
    <dl class="votes">
      {needs.all.map(({ members, quorum, roles, rule }) => (
        <div key={rule}>
          <dt>Needs</dt>
          <dd>
            {quorum} {roles.length === 0 ? "people" : `of ${roles.join(", ")}`}
            {members.length > 0 && ` (${members.join(", ")})`}
          </dd>
        </div>
      ))}
      <div>
        <dt>Voted</dt>
        <dd>{votes.length === 0 ? "nobody yet" : votes.map(({ by, vote }) => `${by}: ${vote}`).join(", ")}</dd>
      </div>
      {lacking !== undefined && lacking !== "" && (
        <div>
          <dt>Missing</dt>
          <dd>{lacking}</dd>
        </div>
      )}
    </dl>
  )
}

/** Why Assent asks, once somebody looks at the card. */
const Why = ({ asked, isFocused }: { readonly asked: PageState.Asked; readonly isFocused: boolean }) => {
  const { interaction, requestId } = asked.request
  const [text, setText] = useState(reasons.get(requestId))
  useEffect(() => {
    if (!isFocused || text !== undefined || interaction._tag !== "Approve" || asked.holder === undefined) return
    if (interaction.arguments === undefined || interaction.argumentsCut !== undefined) return
    const command = `why ${interaction.tool} ${JSON.stringify(interaction.arguments)}`
    if (command.length > 2_000) return
    void PageState.client.value?.permissions(asked.sessionId, command).then((answer) => {
      const told = answer.isOk ? answer.value.lines.join(" ") : ""
      reasons.set(requestId, told)
      setText(told)
    })
  }, [isFocused])
  if (text === undefined || text === "") return null
  return (
    <p class="why">
      <b>Why</b> {text}
    </p>
  )
}

const reasons = new Map<string, string>()

const Deadline = ({ at }: { readonly at: number }) => {
  const left = Math.round((at - PageState.now.value) / 1_000)
  const isUrgent = left < 30
  useEffect(() => {
    if (isUrgent && left > 0) PageState.say("A sign-in ends in less than 30 seconds.", true)
  }, [isUrgent])
  return (
    <p class={isUrgent ? "warning" : "quiet"}>
      {left <= 0 ? "The time for this is over." : `Ends in ${spanOf(left)}.`}
    </p>
  )
}

const Buttons = (props: {
  readonly asked: PageState.Asked
  readonly withdraw?: boolean
  readonly children: ComponentChildren
}) => (
  <div class="actions">
    {props.withdraw === true && <Act run={() => PageState.cancel(props.asked.request.requestId)}>Cancel</Act>}
    {props.children}
  </div>
)

/** A button that does one thing, once at a time, and shows why it failed. */
const Act = (props: {
  readonly run: () => Promise<Failure | void | undefined>
  readonly yes?: boolean
  readonly key_?: string | undefined
  readonly isOpen?: boolean
  readonly autoFocus?: boolean
  readonly children: ComponentChildren
}) => {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState("")
  const element = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    if (props.autoFocus === true) element.current?.focus()
  }, [])
  const click = async () => {
    setBusy(true)
    const failed = await props.run()
    setBusy(false)
    setFailure(failed?.message ?? "")
  }
  return (
    <>
      <button
        ref={element}
        type="button"
        class={props.yes === true ? "yes" : "plain"}
        disabled={isBusy}
        onClick={click}
        {...(props.isOpen === undefined ? {} : { "aria-expanded": props.isOpen })}
        {...(props.key_ === undefined ? {} : { "aria-keyshortcuts": props.key_ })}
      >
        {props.children}
        {props.key_ !== undefined && <kbd aria-hidden="true">{props.key_}</kbd>}
      </button>
      {failure !== "" && (
        <p class="problem" role="alert">
          {failure}
        </p>
      )}
    </>
  )
}
