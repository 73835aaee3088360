/** Something to print. */
export interface Piece {
  /** Whole lines; else text that may end in the middle of one. */
  readonly whole: boolean
  readonly text: string
}

/** The same with adjacent pieces of one kind in one. */
export const joined = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
  const out: Array<Piece> = []
  for (const piece of pieces) {
    const before = out.at(-1)
    if (before === undefined || before.whole !== piece.whole) out.push(piece)
    else out[out.length - 1] = { whole: piece.whole, text: before.text + (piece.whole ? "\n" : "") + piece.text }
  }
  return out
}
