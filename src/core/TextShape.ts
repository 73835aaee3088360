/**
 * Texts of which only the shape is known, such as the JSON of a number, and whether a glob matches one of them.
 *
 * A shape moves along a glob: from the places where a match may stand to the places behind the text. The glob and the
 * shape are read once from left to right, so the time is the product of their lengths at most.
 */
import * as Glob from "./Glob.js"

/** Moves places of a glob past a text of this shape. */
export type TextShape = (track: Glob.Track, places: Places) => Places

type Places = ReadonlySet<number>

/** One part of a list; an optional part may be left out. */
export interface Part {
  readonly shape: TextShape
  readonly optional: boolean
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/** Any text, the empty one too. */
export const any: TextShape = (track, places) => (places.size === 0 ? places : track.takeAny(places))

/** This text alone. */
export const text = (content: string): TextShape => {
  const codes = Array.from(content, (char) => char.codePointAt(0) ?? 0)
  return (track, places) => codes.reduce<Places>((at, code) => (at.size === 0 ? at : track.take(at, code)), places)
}

export const oneOf =
  (shapes: ReadonlyArray<TextShape>): TextShape =>
  (track, places) =>
    new Set(shapes.flatMap((shape) => [...shape(track, places)]))

/** One behind the other. */
export const row =
  (...shapes: ReadonlyArray<TextShape>): TextShape =>
  (track, places) =>
    shapes.reduce<Places>((at, shape) => shape(track, at), places)

/** Parts in this order, with a separator between those that are there. */
export const list =
  (parts: ReadonlyArray<Part>, separator: TextShape): TextShape =>
  (track, places) => {
    let before: Places = places
    let behind: Places = new Set()
    for (const { optional, shape } of parts) {
      const found = new Set([...shape(track, before), ...shape(track, separator(track, behind))])
      behind = optional ? new Set([...behind, ...found]) : found
      if (!optional) before = new Set()
    }
    return new Set([...before, ...behind])
  }

/** Once or more. */
export const many =
  (shape: TextShape): TextShape =>
  (track, places) => {
    const all = new Set<number>()
    let next = shape(track, places)
    while (next.size > 0) {
      const fresh = new Set([...next].filter((place) => !all.has(place)))
      for (const place of fresh) all.add(place)
      next = fresh.size === 0 ? fresh : shape(track, fresh)
    }
    return all
  }

const other =
  (chars: string): TextShape =>
  (track, places) =>
    track.takeOther(
      places,
      Array.from(chars, (char) => char.charCodeAt(0))
    )

const maybe = (shape: TextShape): TextShape => oneOf([text(""), shape])

const digits = many(oneOf(Array.from("0123456789", text)))

/** A text as JSON writes it. */
export const quoted: TextShape = row(
  text('"'),
  maybe(many(oneOf([other('"\\'), row(text("\\"), other(""))]))),
  text('"')
)

/** A number as JSON writes it. */
export const number: TextShape = row(
  maybe(text("-")),
  digits,
  maybe(row(text("."), digits)),
  maybe(row(text("e"), oneOf([text("+"), text("-")]), digits))
)

// -----------------------------------------------------------------------------------------------------------------
// predicates
// -----------------------------------------------------------------------------------------------------------------

/** The glob matches a text of this shape. */
export const fits = (shape: TextShape, glob: Glob.Glob): boolean => {
  const track = Glob.track(glob)
  return track.isEnd(shape(track, new Set([0])))
}
