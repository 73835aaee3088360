/** Sessions in words: one line for a session in a list, and what was said and done in one. */
import * as Duration from "effect/Duration"
import * as Redaction from "../../core/Redaction.js"
import { visible } from "../../audit/AuditReport.js"
import * as Field from "../../interaction/Field.js"
import * as Interaction from "../../interaction/Interaction.js"
import * as InteractionRequest from "../../interaction/InteractionRequest.js"
import { TreeReading, type Fact } from "../../journal/JournalReading.js"
import type { Forked, Turn } from "../../journal/SessionFork.js"
import * as SessionSnapshot from "../../journal/SessionSnapshot.js"
import type { Loaded, WaitingRequest } from "../../journal/SessionStore.js"
import type { Listed } from "../../journal/SessionSummary.js"
import * as Display from "../terminal/Display.js"
import * as LocalTime from "./LocalTime.js"

/** One line: the id first, then when it was last used, how it stands, and its first words. */
export const line = (
  { forkOf, holder, lastActivity, model, open, rootSessionId, state, title, turns }: Listed,
  now: number
): string =>
  visible(
    [
      rootSessionId,
      LocalTime.of(lastActivity, now),
      holder === undefined ? state : `running (process ${holder.pid} on ${holder.host})`,
      count(turns, "turn"),
      model,
      ...(open.length === 0 ? [] : [`${count(open.length, "open request")}`]),
      ...(forkOf === undefined ? [] : [`(fork of ${forkOf.rootSessionId} at turn ${forkOf.turn})`]),
      typedIn(title)
    ]
      .filter((part) => part !== "")
      .join("  ")
  )

/**
 * What a session waits for: who asks since when and what, and how to answer; `answering` is the command without session
 * and request.
 */
export const waiting = (
  { answer, holder, request, rootSessionId, title }: WaitingRequest,
  now: number,
  answering: string
): ReadonlyArray<string> => {
  const { agentPath, interaction, issuedAt, requestId } = request
  const how =
    holder !== undefined
      ? `is run by process ${holder.pid} on ${holder.host}: answer it there`
      : answer !== undefined
        ? `answered by ${answer.by}; counts when the session resumes`
        : Interaction.isSecret(interaction._tag)
          ? "needs a secret, which is not stored: resume the session and answer there"
          : `${answering} ${rootSessionId} ${requestId} ANSWER`
  return [
    [requestId, `since ${LocalTime.of(issuedAt, now)} (${age(now - issuedAt)})`, agentPath, asked(interaction)].join(
      "  "
    ),
    `  in ${[rootSessionId, typedIn(title)].join("  ").trimEnd()}`,
    `  ${how}`
  ].map((text) => visible(text.replaceAll("\t", "    ")))
}

/** The same as data, with the whole request. */
export const waitingJson = (
  { answer, holder, request, rootSessionId, title, workspace }: WaitingRequest,
  folder: string | undefined
) => ({
  _tag: "InteractionRequest",
  rootSessionId,
  title,
  workspace: workspace ?? folder,
  request: InteractionRequest.encode(request),
  answeredBy: answer?.by,
  holder
})

/** Whether a session of a list is the one that is there now, and else in which process it runs. */
const whereabouts = ({ holder }: Listed, isThis: boolean): ReadonlyArray<string> =>
  isThis ? ["(this one)"] : holder === undefined ? [] : [`running in process ${holder.pid}`]

/** The short form, for a chat: id, time, where it runs, first words. */
export const short = (session: Listed, { isThis, now }: { readonly isThis: boolean; readonly now: number }): string => {
  const { lastActivity, rootSessionId, title } = session
  const parts = [rootSessionId, LocalTime.of(lastActivity, now), ...whereabouts(session, isThis), typedIn(title)]
  return visible(parts.join("  ").trimEnd())
}

/**
 * For a list to pick from, a row of so many columns: when it was last used, its first words, how it stands, and the id at the
 * end. One that is too narrow has no id, or nothing but the words behind the time.
 */
export const pickable = (
  session: Listed,
  { columns, isThis = false, now }: { readonly columns: number; readonly now: number; readonly isThis?: boolean }
): string => {
  const { lastActivity, open, rootSessionId, title, turns } = session
  const words = visible(title === "" ? "(nothing was said)" : typedIn(title))
  const begin = `${ago(now, lastActivity).padEnd(agoWidth)}  `
  const running = isThis ? [] : whereabouts(session, isThis)
  const state = [...running, count(turns, "turn"), ...(open.length === 0 ? [] : [count(open.length, "open question")])]
  for (const parts of [[...state, rootSessionId], state, running]) {
    const rest = parts.join("  ")
    const room = columns - begin.length - Display.width(rest) - 2
    if (room < leastTitle || rest === "") continue
    const shown = Display.truncate(words, room)
    return `${begin}${shown}${" ".repeat(room - Display.width(shown))}  ${rest}`
  }
  return `${begin}${Display.truncate(words, Math.max(1, columns - begin.length))}`
}

/** First words, without what is said of the files that came with them; that where there were no others. */
const typedIn = (title: string): string => title.replace(/ \[File .*$/s, "")

/** A line for each turn: its number, when it began, how it ended, and the words that began it. */
export const turns = (all: ReadonlyArray<Turn>, now: number): ReadonlyArray<string> => {
  const width = String(all.length).length
  return all.map((one) => `${String(one.number).padStart(width)}  ${turn(one, now)}`)
}

/** The same of one, without its number. */
export const turn = ({ began, ended, words }: Turn, now: number): string =>
  visible([LocalTime.of(began, now), ended?.end._tag ?? "has not ended", cut(oneLine(words))].join("  ").trimEnd())

/** Where a fork begins, when `at` was wanted. */
export const forked = ({ parent, rootSessionId, turn }: Forked, at: number | undefined): string => {
  const where = turn === 0 ? "the beginning" : `the end of turn ${turn}`
  const before = at === undefined || at === turn ? "" : `Turn ${at} has not ended. `
  return `${before}${rootSessionId} continues from ${where} of ${parent}, which stays unchanged.`
}

/** The transcript in order, a child's lines under its name; then the open requests. */
export const transcript = (loaded: Loaded): ReadonlyArray<string> => {
  const tree = new TreeReading(({ agent, depth }) => (depth > 0 ? `[${agent}] ` : ""))
  const said = loaded.entries.flatMap((written) => {
    const read = tree.read(written)
    return read === undefined ? [] : spoken(read.fact).map((text) => `${read.state}${text}`)
  })
  const open = SessionSnapshot.openRequests(SessionSnapshot.fold(loaded.entries), loaded.answers).map(
    ({ answer, request }) =>
      `open: ${request.requestId}  ${asked(request.interaction)}${answer === undefined ? "" : `  (answered by ${answer.by}; counts when the session resumes)`}`
  )
  return [...said, ...open].map((text) => visible(text.replaceAll("\t", "    ")))
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const spoken = (fact: Fact): ReadonlyArray<string> => {
  const { entry } = fact
  const tool = "call" in fact ? (fact.call?.call.name ?? fact.entry.toolCallId) : ""
  switch (entry._tag) {
    case "SessionOpened":
      return entry.depth > 0 ? [`started, with model ${entry.model}`] : []
    case "MessageReceived": {
      const { interjection, source, text } = entry.message
      const who = source === "user" ? "" : `${source}: `
      return text
        .split("\n")
        .map((row, at) => `${at === 0 ? (interjection === undefined ? "> " : ">> ") + who : "  "}${row}`)
    }
    case "MessageWithdrawn":
      return [`(message ${entry.messageId} was withdrawn)`]
    case "AssistantAppended":
      return [...textOf(entry.content), ...(entry.partial === true ? ["  (stopped here)"] : [])]
    case "CallsProposed":
      return [...textOf(entry.content), ...entry.calls.map(({ name, params }) => `  ${name} ${brief(params)}`)]
    case "CallDecided":
      return entry.granted ? [] : [`    ${tool}: denied, ${entry.method}: ${entry.reason}`]
    case "ToolEnded":
      return [`    ${tool}: ${entry.outcome}  ${brief(entry.result)}`]
    case "InteractionRaised":
      return [`  ? ${asked(entry.request.interaction)}`]
    case "InteractionSettled":
      return [`  = ${entry.status}${entry.by === undefined ? "" : ` by ${entry.by}`}${answerOf(entry.answer)}`]
    case "VoteGiven":
      return [`  + ${entry.by}: ${entry.answer.decision}`]
    case "TurnEnded":
      return [`-- ${entry.end._tag}${entry.end._tag === "Failed" ? `: ${entry.end.error}` : ""}`]
    case "HistoryReplaced":
      return [`-- the history was replaced: ${entry.reason}`]
    case "SessionResumed":
      return ["-- resumed"]
    case "ModelChosen":
      return [`-- model ${entry.model}`]
    case "SessionClosed":
      return [`-- closed${entry.reason === undefined ? "" : `: ${entry.reason}`}`]
    default:
      return []
  }
}

const textOf = (content: ReadonlyArray<{ readonly type: string }>): ReadonlyArray<string> =>
  content.flatMap((part) =>
    part.type === "text" && "text" in part && typeof part.text === "string" ? part.text.split("\n") : []
  )

/** What a person was asked, on one line. */
const asked = (interaction: Interaction.Interaction): string => {
  switch (interaction._tag) {
    case "Approve":
      return `Approve: ${interaction.tool} ${oneLine(interaction.argumentsSummary)}`
    case "grantStageTool":
      return `Grant: ${interaction.tool} ${oneLine(interaction.argsSummary)}`
    case "approveSubagentEnvelope":
      return `Envelope: ${interaction.subagentId} with ${interaction.requestedEnvelope.join(", ")}`
    case "Clarify":
      return `Clarify: ${interaction.questions.map(({ text }) => oneLine(text)).join(" / ")}`
    case "Select":
      return `Select: ${oneLine(interaction.prompt)} (${interaction.options.map(oneLine).join(", ")})`
    case "Elicit":
      return `Elicit: ${oneLine(interaction.title)} (${interaction.fields.map((field) => oneLine(Field.titleOf(field))).join(", ")})`
    case "Ask":
    case "Confirm":
    case "Auth.Password":
      return `${interaction._tag}: ${oneLine(interaction.prompt)}`
    case "Auth.DeviceCode":
      return `${interaction._tag}: ${interaction.url}`
  }
}

const answerOf = (answer: unknown): string => (answer === undefined ? "" : `: ${brief(answer)}`)

const brief = (value: unknown): string => oneLine(Redaction.summarize(value))

const cut = (text: string): string => (text.length <= 80 ? text : `${text.slice(0, 79)}…`)

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim()

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

/** Columns of the longest {@link ago}. */
const agoWidth = 11

/** Columns of words that say enough to know a session by. */
const leastTitle = 16

/** How long ago in one unit, or the day. */
const ago = (now: number, then: number): string => {
  const minutes = Math.floor(Math.max(0, now - then) / 60_000)
  if (!Number.isFinite(minutes)) return "(no time)"
  if (minutes < 1) return "just now"
  if (minutes < 60) return `${minutes} min ago`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`
  return minutes < 7 * 24 * 60 ? `${Math.floor(minutes / 60 / 24)} d ago` : LocalTime.day(then, now)
}

/** Two units at most: `3d 4h`, `2m 5s`. */
const age = (millis: number): string =>
  Duration.format(Duration.seconds(Math.max(0, Math.floor(millis / 1_000))))
    .split(" ")
    .slice(0, 2)
    .join(" ")
