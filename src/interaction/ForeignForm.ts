/**
 * A form that a tool server or an agent of others wants a person to fill in.
 *
 * A form with a secret, and one whose names or choices a person could not read as they are, is nothing to ask.
 */
import * as Arr from "effect/Array"
import * as Either from "effect/Either"
import * as Predicate from "effect/Predicate"
import * as ForeignText from "../core/ForeignText.js"
import * as Field from "./Field.js"
import * as Form from "./Form.js"

/** The fields of a JSON schema, with clean titles; undefined if nobody may be asked for them. */
export const read = (schema: unknown): Field.Fields | undefined => {
  const fields = Form.readSchema(schema)
  const properties = Predicate.isRecord(schema) ? schema["properties"] : undefined
  return Either.isLeft(fields) || fields.right.some(isUnaskable) || namesPassword(properties)
    ? undefined
    : Arr.map(fields.right, shown)
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

/** A name or a choice goes back as it is, so a person must be able to read it. */
const isUnaskable = (field: Field.Field): boolean =>
  Field.isSecret(field) ||
  [field.name, ...(field.choices ?? [])].some((text) => ForeignText.clean(text) !== text.trim())

const shown = (field: Field.Field): Field.Field => ({
  ...field,
  ...(field.title === undefined ? {} : { title: ForeignText.clean(field.title) }),
  ...(field.description === undefined ? {} : { description: ForeignText.clean(field.description) }),
  ...(field.labels === undefined ? {} : { labels: field.labels.map(ForeignText.clean) })
})

const namesPassword = (properties: unknown): boolean =>
  Predicate.isRecord(properties) &&
  Object.values(properties).some((property) => Predicate.isRecord(property) && property["format"] === "password")
