/** The protocol's own JSON schema as a judge of what an editor is sent. */
import { createRequire } from "node:module"
import * as z from "zod"

const published: object = createRequire(import.meta.url)("@agentclientprotocol/sdk/schema/v1/schema.json")

/** Alternatives for kinds that a later protocol may add are left out: nothing of ours may pass for one of them. */
const schema: { readonly $defs: { readonly [name: string]: object } } = JSON.parse(
  JSON.stringify(published),
  (_, value: unknown): unknown =>
    Array.isArray(value)
      ? value.filter((one: unknown) => typeof one !== "object" || one === null || !("not" in one))
      : value
)

const known = new Map<string, z.ZodType>()

/** What is wrong with a value as this type of the protocol; nothing when it is right. */
export const problem = (type: string, value: unknown): string | undefined => {
  const validator = known.get(type) ?? z.fromJSONSchema({ $defs: schema.$defs, $ref: `#/$defs/${type}` } as never)
  known.set(type, validator)
  // As an editor reads it: without what JSON leaves out.
  const result = validator.safeParse(JSON.parse(JSON.stringify(value)))
  return result.success ? undefined : `${JSON.stringify(value)}: ${z.prettifyError(result.error)}`
}
