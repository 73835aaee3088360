/**
 * Decoders and encoders that are made when they are first used.
 *
 * Making one goes through the whole schema, which takes as long as a hundred uses; a short run uses few of those that a
 * program has.
 *
 * ```ts
 * const decode = Codec.lazy(() => Schema.decodeUnknownEither(Person))
 * ```
 */

export const make = <Input, Output>(make: () => (input: Input) => Output): ((input: Input) => Output) => {
  let made: ((input: Input) => Output) | undefined
  return (input) => (made ??= make())(input)
}
