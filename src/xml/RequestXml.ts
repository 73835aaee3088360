/** The elements inside a request: what an interaction shows to a model that answers in text. */
import * as Either from "effect/Either"
import * as Field from "../interaction/Field.js"
import type * as Interaction from "../interaction/Interaction.js"
import type * as Question from "../interaction/Question.js"
import * as XmlElement from "./XmlElement.js"

/** Longer argument values are cut in the text. In characters. */
export const maxArgument = 500

/** Prepares a text to be shown: masks secrets. */
export type Show = (text: string) => string

type Fields = ReadonlyArray<XmlElement.XmlElement>

/**
 * The payload as elements; every text passes through `show`. `cut` is called when a part is not shown. Never throws,
 * whatever the arguments hold.
 */
export const make = (interaction: Interaction.Interaction, show: Show, cut: () => void = () => {}): Fields => {
  switch (interaction._tag) {
    case "Approve":
      return approvePayload(interaction, show, cut)
    case "grantStageTool":
      return [
        field("stage_execution_id", show(interaction.stageExecutionId)),
        field("attempt", String(interaction.attempt)),
        field("proposal_id", show(interaction.proposalId)),
        field("tool_name", show(interaction.tool)),
        field("args_digest", show(interaction.argsDigest)),
        field("args_summary", show(interaction.argsSummary)),
        ...optional("reason", interaction.reason === undefined ? undefined : show(interaction.reason))
      ]
    case "approveSubagentEnvelope": {
      const tools = interaction.requestedEnvelope.map((tool) => field("tool_name", show(tool)))
      const model = { provider_id: show(interaction.model.providerId), model_id: show(interaction.model.modelId) }
      return [
        field("subagent_id", show(interaction.subagentId)),
        field("parent_session_id", show(interaction.parentSessionId)),
        field("depth", String(interaction.depth)),
        XmlElement.make("requested_envelope", {}, tools),
        field("prompt_summary", show(interaction.promptSummary)),
        XmlElement.make("model", model)
      ]
    }
    case "Clarify": {
      const context = interaction.context === "" ? [] : [field("context", show(interaction.context))]
      return [...context, ...interaction.questions.map((question, index) => questionElement(question, index + 1, show))]
    }
    case "Ask":
    case "Auth.Password":
      return [field("prompt", show(interaction.prompt))]
    case "Select": {
      const options = interaction.options.map((text, index) =>
        XmlElement.make("option", { index: index + 1 }, show(text))
      )
      return [field("prompt", show(interaction.prompt)), XmlElement.make("options", {}, options)]
    }
    case "Confirm":
      return [field("prompt", show(interaction.prompt)), field("default", interaction.default ? "yes" : "no")]
    case "Elicit":
      return [
        field("title", show(interaction.title)),
        ...problemElements(interaction.problems, undefined, show),
        ...interaction.fields.map((one) => fieldElement(one, interaction.problems, show))
      ]
    case "Auth.DeviceCode":
      return [
        field("url", show(interaction.url)),
        field("code", show(interaction.code)),
        field("expires_at", String(interaction.expiresAt))
      ]
  }
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const field = (name: string, text: string): XmlElement.XmlElement => XmlElement.make(name, {}, text)
const optional = (name: string, text: string | undefined): Fields => (text === undefined ? [] : [field(name, text)])

const approvePayload = (interaction: Interaction.Approve, show: Show, cut: () => void): Fields => {
  const { argumentsSummary, display, editable } = interaction
  // A summary is enough where all details are shown beside it, or where it is complete.
  const summarised = display?.details === undefined && argumentsSummary.endsWith("…")
  if (display?.truncated === true || (editable === undefined && summarised)) cut()
  // Masked before it is cut: half a secret is a secret too, and is not recognized any more.
  const argument = (name: string, value: unknown): XmlElement.XmlElement => {
    const text = show(argumentText(value))
    if (text.length > maxArgument) cut()
    const shown = text.length <= maxArgument ? text : `${XmlElement.clean(text.slice(0, maxArgument))}...`
    return XmlElement.make("arg", { name: show(name) }, shown)
  }
  const args =
    editable === undefined
      ? [argument("arguments", argumentsSummary)]
      : Object.entries(editable.current).map(([name, value]) => argument(name, value))
  const parameters = editable?.parameters.map((name) => field("parameter", show(name))) ?? []
  const options = interaction.options.map(({ description, full, short }) =>
    XmlElement.make(
      "option",
      { short: short === undefined ? undefined : show(short), full: show(full) },
      show(description)
    )
  )
  return [
    field("tool_name", show(interaction.tool)),
    XmlElement.make("arguments", {}, args),
    ...(parameters.length === 0 ? [] : [XmlElement.make("editable", {}, parameters)]),
    ...(display === undefined ? [] : [displayElement(display, show)]),
    XmlElement.make("options", {}, options)
  ]
}

const argumentText = (value: unknown): string =>
  typeof value === "string"
    ? value
    : Either.getOrElse(
        Either.try(() => JSON.stringify(value) ?? ""),
        () => "(cannot be shown)"
      )

const displayElement = (display: NonNullable<Interaction.Approve["display"]>, show: Show): XmlElement.XmlElement => {
  const { details, format, language, summary, truncated, warnings } = display
  const body = XmlElement.make(
    "details",
    {
      format,
      language: language === undefined ? undefined : show(language),
      truncated: truncated === true ? "true" : undefined
    },
    show(details ?? "")
  )
  return XmlElement.make("display", {}, [
    ...optional("summary", summary === undefined ? undefined : show(summary)),
    ...(details === undefined ? [] : [body]),
    ...(warnings ?? []).map((warning) => field("warning", show(warning)))
  ])
}

const problemElements = (problems: Interaction.Elicit["problems"], of: Field.Field | undefined, show: Show): Fields =>
  Field.problemsAt(problems ?? [], of).map((problem) => field("problem", show(problem)))

const fieldElement = (
  one: Field.Field,
  problems: Interaction.Elicit["problems"],
  show: Show
): XmlElement.XmlElement => {
  const { choices = [], description, format, labels, maximum, maxItems, maxLength, minimum, minItems, minLength } = one
  const preset = one.default
  const isPreset = (choice: string) => (typeof preset === "object" ? preset.includes(choice) : preset === choice)
  const options = choices.map((choice, index) =>
    XmlElement.make(
      "choice",
      { index: index + 1, default: isPreset(choice) ? "true" : undefined },
      show(labels?.[index] ?? choice)
    )
  )
  return XmlElement.make(
    "field",
    {
      name: show(one.name),
      type: one.type,
      required: String(one.required),
      format,
      minimum,
      maximum,
      min_length: minLength,
      max_length: maxLength,
      min_items: minItems,
      max_items: maxItems
    },
    [
      field("title", show(Field.titleOf(one))),
      ...optional("description", description === undefined ? undefined : show(description)),
      ...problemElements(problems, one, show),
      ...(options.length > 0
        ? [XmlElement.make("choices", {}, options)]
        : optional("default", preset === undefined ? undefined : show(Field.shown(one, preset))))
    ]
  )
}

const questionElement = (question: Question.Question, number: number, show: Show): XmlElement.XmlElement => {
  const choices = question.choices.map((text, index) =>
    XmlElement.make(
      "choice",
      { index: index + 1, default: index + 1 === question.default_choice ? "true" : undefined },
      show(text)
    )
  )
  return XmlElement.make(
    "question",
    { index: number, type: question.question_type, required: String(question.required) },
    [field("text", show(question.text)), ...(choices.length === 0 ? [] : [XmlElement.make("choices", {}, choices)])]
  )
}
