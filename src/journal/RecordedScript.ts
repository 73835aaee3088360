/**
 * Turns a recorded session into a script that plays it again, so that a bug report becomes a test.
 *
 * A script holds what models said. Comments beside it hold what people said and answered, where they interrupted a
 * model, and how turns ended. Remarks at the top name what cannot be replayed faithfully.
 *
 * It does not read `SessionSnapshot`, which keeps what a session goes on with, and not every reply in its order.
 *
 * @example
 * ```ts
 * import { type Id, SessionStore } from "assent"
 * import * as RecordedScript from "assent/journal/RecordedScript"
 * import { Effect } from "effect"
 *
 * // A file for `--model script:FILE`.
 * const text = (id: Id.SessionId) =>
 *   Effect.gen(function* () {
 *     const store = yield* SessionStore.SessionStore
 *     return RecordedScript.print(RecordedScript.make(yield* store.load(id)))
 *   })
 * ```
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Yaml from "yaml"
import type { SessionId } from "../core/Id.js"
import * as TerminalText from "../core/TerminalText.js"
import * as Redaction from "../core/Redaction.js"
import type { Usage } from "../event/AgentEvent.js"
import type { TurnEnd } from "../event/TurnEnd.js"
import { visible } from "../audit/AuditReport.js"
import type { InteractionRequest } from "../interaction/InteractionRequest.js"
import type * as ScriptedModel from "../model/ScriptedModel.js"
import type { EntryOf, SessionOpened } from "./JournalEntry.js"
import { TreeReading, type Fact, type FactOf } from "./JournalReading.js"
import type { Loaded } from "./SessionStore.js"

// -----------------------------------------------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------------------------------------------

/**
 * The replies of a session's models, agent by agent.
 *
 * @since 0.1.0
 * @category models
 */
export interface RecordedScript {
  readonly rootSessionId: SessionId
  /** The root's first model. */
  readonly model: string
  /** Time of the first entry, in milliseconds since the epoch. */
  readonly at: number
  /** The root's first words. */
  readonly task: string | undefined
  /** Sentences about what cannot be replayed faithfully. */
  readonly remarks: ReadonlyArray<string>
  readonly agents: ReadonlyArray<RecordedAgent>
}

/**
 * The steps of one agent.
 *
 * @since 0.1.0
 * @category models
 */
export interface RecordedAgent {
  /** The last part of its path, by which a script finds it. */
  readonly name: string
  readonly steps: ReadonlyArray<RecordedStep>
  /** The events after the last step, a line each. */
  readonly after: ReadonlyArray<string>
}

/**
 * One answer of a model, with comments.
 *
 * @since 0.1.0
 * @category models
 */
export interface RecordedStep {
  readonly step: ScriptedModel.Step
  /** The events before the step and its outcome, a line each. */
  readonly comments: ReadonlyArray<string>
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Makes a script from a stored tree. Every journal gives one, also an incomplete one.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = ({ entries, rootSessionId }: Pick<Loaded, "entries" | "rootSessionId">): RecordedScript => {
  const remarks = new Set<string>()
  const tree = new TreeReading((opened) => new Recording(opened, (remark) => remarks.add(remark)))
  for (const written of entries) {
    const read = tree.read(written)
    read?.state.apply(read.fact)
  }
  const sessions = tree.states
  const agents = new Map<string, RecordedAgent>()
  for (const recording of sessions.values()) {
    const agent = recording.agent()
    if (!agents.has(agent.name)) agents.set(agent.name, agent)
    else remarks.add(`Several agents are called ${agent.name}; the script has the steps of the first.`)
  }
  const root = sessions.get(rootSessionId)
  return {
    rootSessionId,
    model: root?.opened.model ?? "",
    at: entries[0]?.at ?? 0,
    task: root?.task,
    remarks: [...remarks],
    agents: [...agents.values()]
  }
}

// -----------------------------------------------------------------------------------------------------------------
// combinators
// -----------------------------------------------------------------------------------------------------------------

/**
 * The script alone, for `ScriptedModel.make`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toScript = ({ agents }: RecordedScript): ScriptedModel.Script => ({
  agents: Object.fromEntries(agents.map(({ name, steps }) => [name, steps.map(({ step }) => step)]))
})

/**
 * The script as a YAML file with comments; `ScriptFile.parse` reads it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const print = (self: RecordedScript): string => {
  const document = new Yaml.Document({ version: 1, ...toScript(self) }, { aliasDuplicateObjects: false })
  // A block scalar would lose leading blanks.
  Yaml.visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value !== "string") return
      // Double quotes allow escapes for control and invisible characters.
      if (/^\s+\n|^\s+$/.test(node.value) || TerminalText.hasUnseen(node.value)) node.type = "QUOTE_DOUBLE"
    }
  })
  document.commentBefore = commented(heading(self))
  for (const { after, name, steps } of self.agents) {
    const sequence = document.getIn(["agents", name], true)
    if (!Yaml.isSeq(sequence)) continue
    for (const [index, { comments }] of steps.entries()) {
      const node = sequence.items[index]
      if (Yaml.isMap(node) && comments.length > 0) node.commentBefore = commented(comments)
    }
    if (after.length > 0) sequence.comment = commented(after)
  }
  return TerminalText.escapeUnseen(document.toString({ lineWidth: 0 }))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const heading = ({ at, model, remarks, rootSessionId, task }: RecordedScript): ReadonlyArray<string> => [
  `Session ${oneLine(rootSessionId)}, recorded ${time(at)} with model ${oneLine(model)}.`,
  ...(task === undefined ? [] : [`It began with: ${oneLine(task)}`]),
  ...(remarks.length === 0 ? [] : ["The replay differs from the session:", ...remarks.map((remark) => `- ${remark}`)])
]

/** Each line begins with a blank, so that it does not stick to the comment mark. */
const commented = (lines: ReadonlyArray<string>): string => lines.map((line) => ` ${line}`).join("\n")

const oneLine = (text: string): string => visible(text.replace(/\s+/g, " ").trim())

const brief = (value: unknown): string => oneLine(Redaction.summarize(value))

const time = (millis: number): string => {
  const date = new Date(millis)
  return Number.isNaN(date.getTime()) ? "at an unknown time" : `${date.toISOString().slice(0, 19).replace("T", " ")}Z`
}

type Content = EntryOf<"CallsProposed">["content"]

/** Converts one session to steps. */
class Recording {
  /** The first words. */
  task: string | undefined
  private readonly steps: Array<RecordedStep> = []
  private comments: Array<string> = []
  private usage: EntryOf<"UsageRecorded"> | undefined
  private readonly ids = new Set<string>()

  constructor(
    readonly opened: SessionOpened,
    private readonly remark: (sentence: string) => void
  ) {}

  get name(): string {
    return this.opened.agent.slice(this.opened.agent.lastIndexOf("/") + 1)
  }

  agent(): RecordedAgent {
    return { name: this.name, steps: this.steps, after: this.comments }
  }

  apply(fact: Fact): void {
    switch (fact._tag) {
      case "MessageReceived":
        return this.receive(fact.entry)
      case "MessageWithdrawn":
        return this.comment("The last words were withdrawn.")
      case "UsageRecorded":
        this.usage = fact.entry
        return
      case "AssistantAppended":
        this.say(fact.entry.content)
        return fact.entry.partial === true ? this.stopped() : undefined
      case "CallsProposed":
        return this.say(fact.entry.content)
      case "CallDecided":
        return this.decide(fact)
      case "ToolEnded":
        return fact.entry.outcome === "succeeded"
          ? undefined
          : this.comment(`${nameOf(fact)} ${fact.entry.outcome}: ${brief(fact.entry.result)}`)
      case "InteractionRaised":
        // A resumed session asks its open questions again.
        return fact.isAgain ? undefined : this.ask(fact.request)
      case "InteractionSettled":
        return this.settle(fact.entry)
      case "VoteGiven": {
        const { answer, by, requestId } = fact.entry
        return this.comment(`${oneLine(requestId)} vote of ${oneLine(by)}: ${answer.decision}`)
      }
      case "HistoryReplaced":
        // Replies are counted in the history, and the compaction removed some.
        this.remark(`The history of ${this.name} was shortened on the way; play it where nothing shortens it.`)
        return this.comment(`The history was replaced here: ${oneLine(fact.entry.reason)}`)
      case "TokensSpent":
        return
      case "SessionResumed":
        return this.comment("Another process continued from here.")
      case "ModelChosen":
        return this.comment(`The model is ${oneLine(fact.entry.model)} from here on.`)
      case "TurnEnded":
        return this.endTurn(fact.entry.end)
    }
  }

  private comment(line: string): void {
    this.comments.push(line)
  }

  private receive({ message: { interjection, source, text } }: EntryOf<"MessageReceived">): void {
    this.task ??= text
    const who = source === "user" ? "" : `${source}: `
    this.comment(`${interjection === undefined ? ">" : ">>"} ${who}${this.kept(oneLine(text))}`)
  }

  /** One reply is one step. */
  private say(content: Content): void {
    const texts: Array<string> = []
    const thoughts: Array<string> = []
    const tools: Array<ScriptedModel.ToolUse> = []
    for (const part of content) {
      if (part.type === "text") texts.push(part.text)
      else if (part.type === "reasoning") thoughts.push(part.text)
      else if (part.type === "tool-call" && !part.providerExecuted) tools.push(this.use(part))
      else if (part.type === "file") this.remark(`${this.name} made a file, which a script cannot.`)
      else if (part.type === "tool-call") {
        this.remark(`${oneLine(part.name)} was run by the provider of ${this.name}, which a script cannot.`)
      }
    }
    const usage = tokens(this.usage?.usage)
    this.usage = undefined
    this.push({
      ...(thoughts.length === 0 ? {} : { thinking: this.kept(thoughts.join("")) }),
      ...(texts.length === 0 ? {} : { text: this.kept(texts.join("")) }),
      ...(tools.length === 0 ? {} : { tools }),
      ...(usage === undefined ? {} : { usage })
    })
  }

  private use({ id, name, params }: Prompt.ToolCallPart): ScriptedModel.ToolUse {
    this.kept(JSON.stringify(params) ?? "")
    if (name === "") this.remark(`${this.name} called a tool without a name; the script calls it nameless.`)
    const isNew = id !== "" && !this.ids.has(id)
    this.ids.add(id)
    return {
      name: name === "" ? "nameless" : name,
      ...(params === undefined ? {} : { params }),
      ...(isNew ? { id } : {})
    }
  }

  private push(step: ScriptedModel.Step): void {
    this.steps.push({ step, comments: this.comments })
    this.comments = []
  }

  private stopped(): void {
    this.remark(`A reply of ${this.name} was interrupted. In the replay, send the words marked >> at that moment.`)
    this.comment("The reply above was stopped here.")
  }

  private decide(fact: FactOf<"CallDecided">): void {
    const { granted, method, reason } = fact.entry
    const how = granted ? "allowed" : "denied"
    this.comment(`${nameOf(fact)} ${how}, ${method}: ${oneLine(reason)}`)
  }

  private ask({ interaction, requestId }: InteractionRequest): void {
    this.comment(`Asked: ${interaction._tag} (${oneLine(requestId)})`)
  }

  private settle({ answer, by, requestId, status }: EntryOf<"InteractionSettled">): void {
    const who = by === undefined ? "" : ` by ${oneLine(by)}`
    const what = answer === undefined ? "" : `: ${this.kept(brief(answer))}`
    this.comment(`${oneLine(requestId)} ${status}${who}${what}`)
  }

  private endTurn(end: TurnEnd): void {
    const failed = end._tag === "Failed" && this.usage?.finishReason === "error"
    const saidNothing = this.usage !== undefined
    this.usage = undefined
    switch (end._tag) {
      case "Completed":
        if (saidNothing) this.remark(`${this.name} ended a turn without words; a script cannot do that.`)
        return
      case "Cancelled":
        return this.comment(`The turn was cancelled: ${end.reason}`)
      case "TurnLimit":
        return this.comment(`The turn ended at its limit of ${end.steps} model calls.`)
      case "Halted":
        return this.comment(`The turn halted: ${oneLine(end.detail)}`)
      case "Denied":
        return this.comment(`The turn was ended: ${oneLine(end.detail)}`)
      case "Failed":
        this.comment(`The turn failed: ${oneLine(end.error)}`)
        // The journal keeps only that an error ended the turn, not the provider's message.
        return failed ? this.push({ error: "bad_output" }) : undefined
    }
  }

  /** Notes that a secret was masked in it. */
  private kept(text: string): string {
    if (text.includes(Redaction.mask)) {
      this.remark(`Secrets were masked in what ${this.name} said or heard: ${Redaction.mask} stands for them.`)
    }
    return text
  }
}

/** The tool of a call; its id where nothing proposed it. */
const nameOf = ({ call, entry }: FactOf<"CallDecided" | "ToolEnded">): string =>
  oneLine(call?.call.name ?? entry.toolCallId)

/** A script has both counts or none. */
const tokens = (usage: Usage | undefined): ScriptedModel.Step["usage"] => {
  const { inputTokens: input, outputTokens: output } = usage ?? {}
  if (input === undefined || output === undefined) return undefined
  return [input, output].every((count) => Number.isSafeInteger(count) && count >= 0) ? { input, output } : undefined
}
