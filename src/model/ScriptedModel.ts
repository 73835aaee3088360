/**
 * A model that plays a script: for tests, demonstrations and measurements.
 *
 * The step of an agent is the number of replies in its history, so the model keeps no state between calls and a resumed
 * session continues where it stopped; a summary counts for the replies in whose place it stands. A generation that was
 * interrupted after some output counts as a reply; one without output is played again. Only scripted errors are counted
 * here, per session, so that each happens once and a retry continues.
 *
 * @example
 * ```ts
 * import { ScriptedModel } from "assent"
 *
 * const model = ScriptedModel.make({
 *   agents: {
 *     main: [{ text: "Let me look.", tools: [{ name: "list_files", params: {} }] }, { text: "Two files." }],
 *     code_reviewer: [{ text: "Looks good." }]
 *   }
 * })
 * ```
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Chunk from "effect/Chunk"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { constant } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Id from "../core/Id.js"
import * as Model from "./Model.js"
import * as WholeAnswer from "./WholeAnswer.js"

/**
 * Errors with which a step can fail before it answers. All but `bad_output` are transient.
 *
 * @since 0.1.0
 * @category constants
 */
export const errors = ["rate_limit", "overloaded", "network", "bad_output"] as const
/**
 * How a step may fail.
 *
 * @since 0.1.0
 * @category models
 */
export type ErrorKind = (typeof errors)[number]

/**
 * One call of a tool.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolUse {
  readonly name: string
  /** The arguments as the model writes them, unchecked. Default: `{}`. */
  readonly params?: unknown
  /** Unique within a session. Default: a fresh one. */
  readonly id?: string | undefined
}

/**
 * One reply of the model.
 *
 * @since 0.1.0
 * @category models
 */
export interface Step {
  readonly text?: string | undefined
  readonly thinking?: string | undefined
  readonly tools?: ReadonlyArray<ToolUse> | undefined
  /** Delay before the answer. */
  readonly delay?: Duration.DurationInput | undefined
  /** The text, and the arguments of tools, are streamed in this many pieces. Default: in one. */
  readonly chunks?: number | undefined
  /** Delay between two pieces. */
  readonly chunkDelay?: Duration.DurationInput | undefined
  /** Tokens. Default: unknown. */
  readonly usage?: { readonly input: number; readonly output: number } | undefined
  /** Fails with this error once in a session; the retry plays the step. A step with only an error is no reply. */
  readonly error?: ErrorKind | undefined
  /** Fails the generation when the last input to the model, which is all after its last reply, lacks this text. */
  readonly expect?: { readonly contains: string } | undefined
}

/**
 * The steps of each agent, by `main` or the name of its profile.
 *
 * @since 0.1.0
 * @category models
 */
export interface Script {
  readonly agents: { readonly [agent: string]: ReadonlyArray<Step> }
}

// -----------------------------------------------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------------------------------------------

/**
 * Plays a script. After an agent's last step it replies that the script has ended, without tool calls.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (script: Script, options: { readonly id?: string | undefined } = {}): Model.Service =>
  new Player(script, options.id ?? "script/script")

// -----------------------------------------------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------------------------------------------

/**
 * The scripted model is the one that agents use; see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (script: Script, options?: { readonly id?: string | undefined }): Layer.Layer<Model.Model> =>
  Model.layer(make(script, options))

// -----------------------------------------------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------------------------------------------

class Player implements Model.Service {
  private readonly ids = Id.random()
  /** Failures of a step so far, by session, agent and step. */
  private readonly attempts = new Map<string, number>()
  private readonly reels: ReadonlyMap<string, ReadonlyArray<Scene>>
  readonly stream: Model.Service["stream"] = WholeAnswer.bind(
    (request: Model.Request) => this.play(request),
    (request) => this.whole(request)
  )

  constructor(
    script: Script,
    readonly id: string
  ) {
    this.reels = new Map(
      Object.entries(script.agents).map(([agent, steps]) => [agent, toReel(agent, steps, this.ids)] as const)
    )
  }

  private play({ agent, prompt, sessionId }: Model.Request): Stream.Stream<Model.Part, Model.ModelError> {
    const { at, scene } = this.next(prompt, agent)
    if (scene.expected === undefined && scene.failures.length === 0) return scene.play()
    return Stream.suspend(() => {
      const wrong = this.wrong(scene, prompt, `${sessionId}\n${at}`)
      return wrong === undefined ? scene.play() : Stream.fail(wrong)
    })
  }

  private whole({
    agent,
    prompt,
    sessionId
  }: Model.Request): Effect.Effect<ReadonlyArray<Model.Part>, Model.ModelError> | undefined {
    const { at, scene } = this.next(prompt, agent)
    const { whole } = scene
    if (whole === undefined) return undefined
    if (scene.expected === undefined && scene.failures.length === 0) return whole()
    return Effect.suspend(() => {
      const wrong = this.wrong(scene, prompt, `${sessionId}\n${at}`)
      return wrong === undefined ? whole() : Effect.fail(wrong)
    })
  }

  private next(prompt: Prompt.Prompt, path: string): { readonly scene: Scene; readonly at: string } {
    const agent = path.slice(path.lastIndexOf("/") + 1)
    // Siblings of one name are numbered, and play the same steps.
    const reel = this.reels.get(agent) ?? this.reels.get(agent.replace(/-\d+$/, "")) ?? []
    const index = Math.max(0, Math.min(repliesIn(prompt), reel.length - 1))
    const scene = reel[index] ?? toScene(agent, 1, { text: `The script has no steps for ${agent}.` }, [], this.ids)
    return { scene, at: `${agent}\n${index}` }
  }

  /** The scripted error of this attempt, if any. */
  private wrong(scene: Scene, prompt: Prompt.Prompt, key: string): Model.ModelError | undefined {
    if (scene.expected !== undefined) {
      const input = lastInput(prompt)
      if (!input.includes(scene.expected)) return unexpected(this.id, scene, scene.expected, input)
    }
    const attempt = this.attempts.get(key) ?? 0
    const failure = scene.failures[attempt]
    if (failure === undefined) return undefined
    this.attempts.set(key, attempt + 1)
    return failed(this.id, scene, failure)
  }
}

/** A reply, prepared once: its errors, and then its parts. */
interface Scene {
  readonly agent: string
  /** 1-based number of the step in the script. */
  readonly number: number
  readonly failures: ReadonlyArray<ErrorKind>
  readonly expected: string | undefined
  /** Called for each generation, so that calls get fresh ids; a reply without ids is always the same stream. */
  readonly play: () => Stream.Stream<Model.Part>
  /** The whole reply at once, for a reply in one piece. */
  readonly whole: (() => Effect.Effect<ReadonlyArray<Model.Part>>) | undefined
}

/** Steps with only an error become failures of the next reply. The last scene is the end. */
const toReel = (agent: string, steps: ReadonlyArray<Step>, ids: Id.Generator): ReadonlyArray<Scene> => {
  const reel: Array<Scene> = []
  let failures: Array<ErrorKind> = []
  const push = (number: number, step: Step) => {
    reel.push(toScene(agent, number, step, failures, ids))
    failures = []
  }
  for (const [index, step] of steps.entries()) {
    if (step.error !== undefined) failures.push(step.error)
    if (step.error === undefined || saysSomething(step)) push(index + 1, step)
  }
  push(steps.length + 1, { text: `The script of ${agent} has no more steps.` })
  return reel
}

const saysSomething = (step: Step): boolean =>
  step.text !== undefined || step.thinking !== undefined || step.expect !== undefined || (step.tools ?? []).length > 0

const repliesIn = (prompt: Prompt.Prompt): number => {
  let replies = 0
  for (const { options, role } of prompt.content) {
    if (role === "assistant") replies++
    // A summary says how many replies it replaces; see `History.Metadata`.
    else replies += (options["assent"] as { readonly replies?: number } | undefined)?.replies ?? 0
  }
  return replies
}

/** Everything people and tools said after the model's last reply. */
const lastInput = (prompt: Prompt.Prompt): string => {
  const texts: Array<string> = []
  for (let index = prompt.content.length - 1; index >= 0; index--) {
    const message = prompt.content[index]
    if (message === undefined || message.role === "assistant") break
    if (message.role === "system") continue
    for (const part of message.content) {
      if (part.type === "text") texts.push(part.text)
      // Both as JSON and as its plain texts: a script may look for either.
      else if (part.type === "tool-result") texts.push(JSON.stringify(part.result) ?? "", ...textsIn(part.result))
    }
  }
  return texts.join("\n")
}

const textsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : []
}

const unexpected = (id: string, scene: Scene, expected: string, input: string): Model.ModelError => {
  const shown = input.length <= 200 ? input : `${input.slice(0, 199)}…`
  return new Model.BadOutput({
    model: id,
    message:
      `Step ${scene.number} of ${scene.agent} expected the last input to contain ${JSON.stringify(expected)}, ` +
      `but it was ${JSON.stringify(shown)}.`
  })
}

const failed = (id: string, scene: Scene, kind: ErrorKind): Model.ModelError => {
  const message = `The script fails here, before step ${scene.number} of ${scene.agent}: ${kind}.`
  switch (kind) {
    case "rate_limit":
      return new Model.RateLimited({ model: id, message, status: 429 })
    case "overloaded":
      return new Model.Overloaded({ model: id, message, status: 529 })
    case "network":
      return new Model.Network({ model: id, message })
    case "bad_output":
      return new Model.BadOutput({ model: id, message })
  }
}

/** One piece of a reply: parts that arrive together. */
type Piece = Array<Model.Part>

const toScene = (
  agent: string,
  number: number,
  step: Step,
  failures: ReadonlyArray<ErrorKind>,
  ids: Id.Generator
): Scene => {
  const tools = step.tools ?? []
  const isWhole = step.chunks === undefined && step.chunkDelay === undefined
  const make = () => toPieces(step, tools, ids)
  const pieces = tools.some(({ id }) => id === undefined) ? make : constant(make())
  return {
    agent,
    number,
    failures,
    expected: step.expect?.contains,
    play: () => {
      const stream = isWhole
        ? Stream.fromChunk(Chunk.unsafeFromArray(pieces().flat()))
        : inPieces(pieces(), step.chunkDelay)
      return step.delay === undefined ? stream : Stream.unwrap(Effect.as(Effect.sleep(step.delay), stream))
    },
    whole: isWhole
      ? () => {
          const all = Effect.sync(() => pieces().flat())
          return step.delay === undefined ? all : Effect.zipRight(Effect.sleep(step.delay), all)
        }
      : undefined
  }
}

const inPieces = (
  pieces: ReadonlyArray<Piece>,
  pause: Duration.DurationInput | undefined
): Stream.Stream<Model.Part> => {
  const chunks = pieces.map((piece) => Chunk.unsafeFromArray(piece))
  if (pause === undefined) return Stream.fromChunks(...chunks)
  return Stream.fromIterable([...chunks.entries()]).pipe(
    Stream.mapEffect(([index, chunk]) => (index === 0 ? Effect.succeed(chunk) : Effect.as(Effect.sleep(pause), chunk))),
    Stream.flattenChunks
  )
}

const toPieces = (step: Step, tools: ReadonlyArray<ToolUse>, ids: Id.Generator): ReadonlyArray<Piece> => {
  const count = step.chunks ?? 1
  const pieces: Array<Piece> = []
  if (step.thinking !== undefined) {
    const deltas = split(step.thinking, count).map((delta): Model.Part => ({ type: "reasoning-delta", id: "0", delta }))
    pieces.push(...framed({ type: "reasoning-start", id: "0" }, deltas, { type: "reasoning-end", id: "0" }))
  }
  if (step.text !== undefined) {
    const deltas = split(step.text, count).map((delta): Model.Part => ({ type: "text-delta", id: "1", delta }))
    pieces.push(...framed({ type: "text-start", id: "1" }, deltas, { type: "text-end", id: "1" }))
  }
  for (const tool of tools) {
    const id = tool.id ?? ids.unsafeNext("call")
    const params = tool.params ?? {}
    const call: Model.Part = { type: "tool-call", id, name: tool.name, params }
    if (step.chunks === undefined) pieces.push([call])
    else {
      const deltas = split(JSON.stringify(params), count).map((delta): Model.Part => ({
        type: "tool-params-delta",
        id,
        delta
      }))
      pieces.push(
        ...framed({ type: "tool-params-start", id, name: tool.name }, deltas, { type: "tool-params-end", id }, call)
      )
    }
  }
  const usage = {
    inputTokens: step.usage?.input,
    outputTokens: step.usage?.output,
    totalTokens: step.usage === undefined ? undefined : step.usage.input + step.usage.output
  }
  const finish: Model.Part = { type: "finish", reason: tools.length > 0 ? "tool-calls" : "stop", usage }
  const last = pieces[pieces.length - 1]
  if (last === undefined) return [[finish]]
  last.push(finish)
  return pieces
}

/** Start and end travel with the first and the last piece. */
const framed = (
  start: Model.Part,
  deltas: ReadonlyArray<Model.Part>,
  ...end: ReadonlyArray<Model.Part>
): Array<Piece> =>
  deltas.length === 0
    ? [[start, ...end]]
    : deltas.map((delta, index) => [
        ...(index === 0 ? [start] : []),
        delta,
        ...(index === deltas.length - 1 ? end : [])
      ])

/** At most `count` pieces of about one size, cut between characters. */
const split = (text: string, count: number): ReadonlyArray<string> => {
  if (text === "") return []
  if (count <= 1) return [text]
  const characters = Array.from(text)
  const size = Math.ceil(characters.length / count)
  const pieces: Array<string> = []
  for (let at = 0; at < characters.length; at += size) pieces.push(characters.slice(at, at + size).join(""))
  return pieces
}
