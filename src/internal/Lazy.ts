/**
 * Decoders and encoders that are made at their first use.
 *
 * Making one walks the whole schema, which takes as long as a hundred uses; a short run uses few of a program's
 * schemas.
 *
 * ```
 * const decode = Lazy.make(() => Schema.decodeUnknownEither(Person))
 * ```
 */

export const make = <Input, Output>(make: () => (input: Input) => Output): ((input: Input) => Output) => {
  let made: ((input: Input) => Output) | undefined
  return (input) => (made ??= make())(input)
}
