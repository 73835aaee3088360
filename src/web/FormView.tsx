/** A form of any request: its fields by their schema, their problems, and what was filled in. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { ComponentChildren } from "preact"
import type { Failure } from "./ServerCalls.js"
import { TextDiff } from "./DiffView.js"
import type { Choice, Form, Property } from "./PageState.js"

export type Value = string | number | boolean | ReadonlyArray<string>
export type Values = { readonly [name: string]: Value }

export interface Props {
  readonly form: Form
  /** An editor of arguments shows what changes, and sends only that. */
  readonly isEditor?: boolean
  readonly submit: string
  readonly send: (values: Values) => Promise<Failure | undefined>
  readonly leave?: () => void
  readonly children?: ComponentChildren
  readonly autoFocus?: boolean
}

export const FormView = (props: Props) => {
  const { autoFocus = false, children, form, isEditor = false, leave, send, submit } = props
  const { properties, required } = form.requestedSchema
  const names = Object.keys(properties)
  const [values, setValues] = useState<Values>(() => presets(properties))
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map())
  const [isSending, setSending] = useState(false)
  const element = useRef<HTMLFormElement>(null)
  const id = useId()

  useLayoutEffect(() => {
    if (autoFocus) element.current?.querySelector<HTMLElement>("input, textarea, select")?.focus()
  }, [autoFocus])

  const presetOf = (name: string): Value | undefined => properties[name]?.default
  const changed = names.filter((name) => values[name] !== undefined && values[name] !== presetOf(name))

  const escaped = (event: KeyboardEvent) => {
    if (event.key === "Escape") leave?.()
  }

  const submitted = async (event: Event) => {
    event.preventDefault()
    const found = check(properties, required, values)
    setProblems(found)
    if (found.size > 0) return show(element.current, found)
    const sent = isEditor ? changed : names.filter((name) => isFilled(values[name]))
    setSending(true)
    const failure = await send(Object.fromEntries(sent.map((name) => [name, values[name] ?? ""])))
    setSending(false)
    if (failure === undefined) return undefined
    const told = new Map((failure.problems ?? []).map(({ field = "", message }) => [field, message]))
    if (told.size === 0) told.set("", failure.message)
    setProblems(told)
    return show(element.current, told)
  }

  return (
    <form class="form" ref={element} onSubmit={submitted} onKeyDown={escaped} noValidate aria-label={form.message}>
      {!isEditor && <p class="message">{form.message}</p>}
      {names.map((name) => {
        const property = properties[name]
        if (property === undefined) return undefined
        return (
          <FieldView
            key={name}
            id={`${id}-${name}`}
            name={name}
            property={property}
            // An argument that nobody changes stays as it is.
            isRequired={isEditor || required.includes(name)}
            value={values[name]}
            problem={problems.get(name)}
            set={(value) => setValues((before) => ({ ...before, [name]: value }))}
          />
        )
      })}
      {isEditor && changed.length > 0 && (
        <div class="changes">
          {changed.map((name) => (
            <div key={name}>
              {names.length > 1 && <p class="quiet">{name}</p>}
              <TextDiff before={String(presetOf(name) ?? "")} after={String(values[name] ?? "")} />
            </div>
          ))}
        </div>
      )}
      {problems.has("") && (
        <p class="problem" role="alert">
          {problems.get("")}
        </p>
      )}
      <div class="actions">
        {leave !== undefined && (
          <button type="button" class="plain" onClick={leave}>
            Back
          </button>
        )}
        {children}
        <button type="submit" class="yes" disabled={isSending || (isEditor && changed.length === 0)}>
          {submit}
        </button>
      </div>
    </form>
  )
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const presets = (properties: Form["requestedSchema"]["properties"]): Values =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, { default: preset, type }]): ReadonlyArray<readonly [string, Value]> => {
      if (preset !== undefined) return [[name, preset]]
      return type === "array" ? [[name, []]] : []
    })
  )

const isFilled = (value: Value | undefined): boolean =>
  value !== undefined && value !== "" && !(typeof value === "object" && value.length === 0)

/** What a browser can see without the server, which has the last word. */
const check = (
  properties: Form["requestedSchema"]["properties"],
  required: ReadonlyArray<string>,
  values: Values
): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  for (const [name, property] of Object.entries(properties)) {
    const value = values[name]
    if (required.includes(name) && !isFilled(value)) {
      found.set(name, choicesOf(property) === undefined ? "Fill this in." : "Choose one.")
    } else if (typeof value === "number" && Number.isNaN(value)) found.set(name, "That is no number.")
  }
  return found
}

const show = (form: HTMLFormElement | null, problems: ReadonlyMap<string, string>): undefined => {
  const [first] = problems.keys()
  if (first !== undefined && first !== "") form?.querySelector<HTMLElement>(`[name=${CSS.escape(first)}]`)?.focus()
  return undefined
}

const choicesOf = ({ enum: plain, items, oneOf }: Property): ReadonlyArray<Choice> | undefined =>
  oneOf ?? items?.anyOf ?? (plain ?? items?.enum)?.map((value) => ({ const: value, title: value }))

interface FieldProps {
  readonly id: string
  readonly name: string
  readonly property: Property
  readonly isRequired: boolean
  readonly value: Value | undefined
  readonly problem: string | undefined
  readonly set: (value: Value) => void
}

const FieldView = (props: FieldProps) => {
  const { id, isRequired, name, problem, property, set, value } = props
  const choices = choicesOf(property)
  const title = property.title ?? name
  const described = [
    ...(property.description === undefined ? [] : [`${id}-d`]),
    ...(problem === undefined ? [] : [`${id}-p`])
  ].join(" ")
  const common = {
    name,
    "aria-invalid": problem !== undefined,
    ...(described === "" ? {} : { "aria-describedby": described })
  }
  const isGroup = choices !== undefined || property.type === "boolean"
  const words = (
    <>
      {title}
      {!isRequired && <span class="optional"> optional</span>}
    </>
  )
  const below = (
    <>
      {property.description !== undefined && (
        <p class="quiet" id={`${id}-d`}>
          {property.description}
        </p>
      )}
      {problem !== undefined && (
        <p class="problem" id={`${id}-p`} role="alert">
          {problem}
        </p>
      )}
    </>
  )
  if (isGroup) {
    return (
      <fieldset class="field">
        <legend>{words}</legend>
        {choices !== undefined && property.type === "array"
          ? choices.map((choice) => (
              <Option
                key={choice.const}
                {...common}
                type="checkbox"
                title={choice.title}
                isOn={has(value, choice.const)}
                change={(isOn) => set(without(value, choice.const, isOn))}
              />
            ))
          : choices !== undefined
            ? choices.map((choice) => (
                <Option
                  key={choice.const}
                  {...common}
                  type="radio"
                  title={choice.title}
                  isOn={value === choice.const}
                  change={() => set(choice.const)}
                />
              ))
            : [true, false].map((choice) => (
                <Option
                  key={String(choice)}
                  {...common}
                  type="radio"
                  title={choice ? "Yes" : "No"}
                  isOn={value === choice}
                  change={() => set(choice)}
                />
              ))}
        {below}
      </fieldset>
    )
  }
  const isNumber = property.type === "number" || property.type === "integer"
  const text = value === undefined || (typeof value === "number" && Number.isNaN(value)) ? "" : String(value)
  return (
    <div class="field">
      <label for={id}>{words}</label>
      {isNumber ? (
        <input
          id={id}
          {...common}
          inputMode="decimal"
          value={text}
          onInput={({ currentTarget }) =>
            set(currentTarget.value === "" ? "" : Number(currentTarget.value.replace(",", ".")))
          }
        />
      ) : property.format === "date" ? (
        <input id={id} {...common} type="date" value={text} onInput={({ currentTarget }) => set(currentTarget.value)} />
      ) : property.format !== undefined ? (
        <input
          id={id}
          {...common}
          inputMode={property.format === "email" ? "email" : property.format === "uri" ? "url" : "text"}
          value={text}
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      ) : (
        <textarea
          id={id}
          {...common}
          rows={Math.min(16, Math.max(1, text.split("\n").length))}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => set(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
          }}
        />
      )}
      {below}
    </div>
  )
}

const Option = (props: {
  readonly name: string
  readonly type: "radio" | "checkbox"
  readonly title: string
  readonly isOn: boolean
  readonly change: (isOn: boolean) => void
}) => {
  const { change, isOn, name, title, type } = props
  return (
    <label class="choice">
      <input type={type} name={name} checked={isOn} onChange={({ currentTarget }) => change(currentTarget.checked)} />
      <span>{title}</span>
    </label>
  )
}

const has = (value: Value | undefined, choice: string): boolean => typeof value === "object" && value.includes(choice)

const without = (value: Value | undefined, choice: string, isOn: boolean): ReadonlyArray<string> => {
  const rest = typeof value === "object" ? value.filter((one) => one !== choice) : []
  return isOn ? [...rest, choice] : rest
}
