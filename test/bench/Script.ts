/** What the mock models say, the same for every system. */

/** One call of the tool `add`. */
export interface Call {
  readonly id: string
  readonly a: number
  readonly b: number
}

/** One answer of the model: calls to make, or the last words of a run. */
export interface Reply {
  readonly calls: ReadonlyArray<Call>
  readonly text: string
}

export type Script = ReadonlyArray<Reply>

/** A run of so many turns with one call each, numbered from `first`, and then words. */
export const turns = (count: number, first = 0): Script => [
  ...Array.from({ length: count }, (_, i): Reply => ({ calls: [call(first + i)], text: "" })),
  words
]

/** One turn with so many calls, and then words. */
export const batch = (size: number): Script => [
  { calls: Array.from({ length: size }, (_, i) => call(i)), text: "" },
  words
]

/** What the arguments of a script's calls add up to. */
export const sum = (script: Script): number =>
  script.flatMap(({ calls }) => calls).reduce((total, { a, b }) => total + a + b, 0)

/** Pieces of a streamed answer. */
export const deltas = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, i) => `word ${i} `)

/** Opens when so many have come; until then all of them wait, so they are all under way at the same time. */
export class Crowd {
  private readonly waiting: Array<() => void> = []

  constructor(private readonly size: number) {}

  readonly join = (): Promise<void> =>
    new Promise((resolve) => {
      this.waiting.push(resolve)
      if (this.waiting.length === this.size) for (const go of this.waiting.splice(0)) go()
    })
}

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

const call = (i: number): Call => ({ id: `call_${i}`, a: i, b: 1 })

const words: Reply = { calls: [], text: "done" }
