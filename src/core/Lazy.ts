/**
 * Schemas, decoders and encoders that are made at their first use.
 *
 * Making a schema copies the parts it has, and making its decoder walks the whole of it, which takes as long as a hundred
 * uses; a program uses few of the schemas that it loads.
 *
 * ```
 * const Person = Lazy.schema(() => Schema.Struct({ name: Schema.String }))
 * const decode = Lazy.make(() => Schema.decodeUnknownEither(Person))
 * ```
 */
import type * as Schema from "effect/Schema"

export const make = <Input, Output>(make: () => (input: Input) => Output): ((input: Input) => Output) => {
  const made = once(make)
  return (input) => made()(input)
}

/**
 * A schema that stands for the one that is made. Whoever reads a part of it has it made; a schema of which it is a field
 * or a member reads it at once, and is made late itself.
 */
export const schema = <A extends Schema.Schema.All>(make: () => A): A => {
  const made = once(make)
  // What is never read through it, such as the names of its own parts, is that of an empty function.
  const empty: unknown = () => {}
  return new Proxy(empty as A, {
    get: (_, key) => Reflect.get(made(), key) as unknown,
    has: (_, key) => Reflect.has(made(), key)
  })
}

const once = <A extends object>(make: () => A): (() => A) => {
  let made: A | undefined
  return () => (made ??= make())
}
