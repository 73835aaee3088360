/** A pattern as a nondeterministic automaton: what {@link LinePattern} runs, and what is known of it before any text. */
import type * as CharacterSet from "./CharacterSet.js"
import type * as PatternSyntax from "./PatternSyntax.js"

/** How many instructions it becomes, at most, with its counts written out. */
export const sizeOf = (node: PatternSyntax.Node): number => {
  switch (node._tag) {
    case "Atom":
    case "Assert":
      return 1
    case "Sequence":
    case "Either":
      return node.nodes.reduce((sum, each) => sum + sizeOf(each) + 1, 0)
    case "Repeat":
      return (sizeOf(node.node) + 1) * Math.max(1, node.max === Infinity ? node.min + 1 : node.max)
  }
}

export type Instruction =
  /** `set` is a place among the sets of the program. */
  | { readonly _tag: "Char"; readonly set: number; readonly next: number }
  | { readonly _tag: "Assert"; readonly assertion: PatternSyntax.Assertion; readonly next: number }
  | { readonly _tag: "Fork"; readonly next: ReadonlyArray<number>; readonly isChoice: boolean }
  | { readonly _tag: "Match" }

export interface Program {
  readonly instructions: ReadonlyArray<Instruction>
  readonly sets: ReadonlyArray<CharacterSet.CharacterSet>
  readonly start: number
}

/** Built from the end: each node is compiled knowing what follows it. */
export const compile = (root: PatternSyntax.Node): Program => {
  const instructions: Array<Instruction> = [{ _tag: "Match" }]
  const sets: Array<CharacterSet.CharacterSet> = []
  const places = new Map<string, number>()
  const push = (instruction: Instruction): number => instructions.push(instruction) - 1
  const placeOf = (key: string, set: CharacterSet.CharacterSet): number => {
    const known = places.get(key)
    if (known !== undefined) return known
    const place = sets.push(set) - 1
    places.set(key, place)
    return place
  }
  const emit = (node: PatternSyntax.Node, next: number): number => {
    switch (node._tag) {
      case "Atom":
        return push({ _tag: "Char", set: placeOf(node.key, node.set), next })
      case "Assert":
        return push({ _tag: "Assert", assertion: node.assertion, next })
      case "Sequence":
        return node.nodes.reduceRight((after, each) => emit(each, after), next)
      case "Either":
        return push({ _tag: "Fork", next: node.nodes.map((each) => emit(each, next)), isChoice: true })
      case "Repeat": {
        let entry = next
        if (node.max === Infinity) {
          const exits = [next]
          entry = push({ _tag: "Fork", next: exits, isChoice: false })
          exits.push(emit(node.node, entry))
        } else {
          for (let i = node.min; i < node.max; i++) {
            entry = push({ _tag: "Fork", next: [next, emit(node.node, entry)], isChoice: false })
          }
        }
        for (let i = 0; i < node.min; i++) entry = emit(node.node, entry)
        return entry
      }
    }
  }
  const start = emit(root, 0)
  return { instructions, sets, start }
}

/** What is on one side of a position: no character, a word character, or another one. */
export type Side = 0 | 1 | 2
export const edge = 0
export const word = 1
export const other = 2
export const sides: ReadonlyArray<Side> = [edge, word, other]

export const holds = (assertion: PatternSyntax.Assertion, before: Side, after: Side): boolean => {
  switch (assertion) {
    case "start":
      return before === edge
    case "end":
      return after === edge
    case "boundary":
      return (before === word) !== (after === word)
    case "inside":
      return (before === word) === (after === word)
    case "wordStart":
      return before !== word && after === word
    case "wordEnd":
      return before === word && after !== word
    case "noWordBefore":
      return before !== word
    case "noWordAfter":
      return after !== word
  }
}

/**
 * Whether there are lines that match, for each alternative too. Only what assertions forbid is seen: a set of characters
 * counts as one that has some.
 */
export const canMatch = ({ instructions, sets, start }: Program): boolean => {
  if (!instructions.some(({ _tag }) => _tag === "Assert")) return true
  // An instruction between a side before it and one behind it.
  const nodeOf = (pc: number, before: Side, after: Side): number => (pc * 3 + before) * 3 + after
  const comesFrom: Array<Array<number> | undefined> = []
  const todo: Array<readonly [pc: number, before: Side, after: Side]> = []
  const reach = (pc: number, before: Side, after: Side, from?: number): void => {
    const node = nodeOf(pc, before, after)
    if (comesFrom[node] === undefined) todo.push([pc, before, after])
    const known = (comesFrom[node] ??= [])
    if (from !== undefined) known.push(from)
  }
  for (const before of sides) for (const after of sides) reach(start, before, after)
  for (let one = todo.pop(); one !== undefined; one = todo.pop()) {
    const [pc, before, after] = one
    const instruction = instructions[pc]
    const node = nodeOf(pc, before, after)
    if (instruction === undefined || instruction._tag === "Match") continue
    if (instruction._tag === "Fork") for (const next of instruction.next) reach(next, before, after, node)
    else if (instruction._tag === "Assert") {
      if (holds(instruction.assertion, before, after)) reach(instruction.next, before, after, node)
    } else {
      const side = sets[instruction.set]?.side
      const fits = after !== edge && (side === undefined || (side === "word") === (after === word))
      if (fits) for (const then of sides) reach(instruction.next, after, then, node)
    }
  }
  const leads = new Set<number>()
  const back = sides.flatMap((before) => sides.map((after) => nodeOf(0, before, after)))
  for (let node = back.pop(); node !== undefined; node = back.pop()) {
    const from = comesFrom[node]
    if (from === undefined || leads.has(node)) continue
    leads.add(node)
    back.push(...from)
  }
  const isUseful = (pc: number): boolean =>
    sides.some((before) => sides.some((after) => leads.has(nodeOf(pc, before, after))))
  const choices = instructions.flatMap((each) => (each._tag === "Fork" && each.isChoice ? each.next : []))
  return isUseful(start) && choices.every(isUseful)
}
