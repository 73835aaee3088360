/**
 * How often long random tests run: all of it with `ASSENT_RUNS=all`, which is `npm run soak:random`, and otherwise a
 * quarter of it.
 */
const share = process.env["ASSENT_RUNS"] === "all" ? 1 : 0.25

export const of = (all: number): number => Math.ceil(all * share)
