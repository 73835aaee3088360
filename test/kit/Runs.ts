/** How often long random tests run: a sixteenth of what is asked for, and all of it by `npm run soak:random`. */

/** Whether everything is run. */
export const isWhole = process.env["ASSENT_RUNS"] === "all"

/** Each sixteenth of these, and all of them by `npm run soak:random`. */
export const some = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> =>
  all.filter((_, index) => isWhole || index % 16 === 0)

export const of = (all: number): number => Math.ceil(all * (isWhole ? 1 : 1 / 16))
