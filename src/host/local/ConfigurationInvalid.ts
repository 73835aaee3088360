/** A setting cannot be used: a file, a variable, a model, a channel. */
import * as Schema from "effect/Schema"

/** The message names what is wrong and says what can be given instead. */
export class ConfigurationInvalid extends Schema.TaggedError<ConfigurationInvalid>("assent/host/ConfigurationInvalid")(
  "ConfigurationInvalid",
  { message: Schema.String }
) {}

export const make = (message: string): ConfigurationInvalid => new ConfigurationInvalid({ message })
