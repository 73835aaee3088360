/** A gate with its state, a scripted person and a recording bus; tools with every trait that a gate reads. */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type * as AuditTrail from "../../src/audit/AuditTrail.js"
import type { CorrelationId, SessionId, ToolCallId } from "../../src/core/Id.js"
import * as Origin from "../../src/core/Origin.js"
import * as Redaction from "../../src/core/Redaction.js"
import type * as AgentEvent from "../../src/event/AgentEvent.js"
import * as Interactor from "../../src/interaction/Interactor.js"
import * as PermissionFile from "../../src/permission/PermissionFile.js"
import type * as Guard from "../../src/permission/Guard.js"
import * as PermissionGate from "../../src/permission/PermissionGate.js"
import { PermissionState } from "../../src/permission/PermissionState.js"
import type { PolicySource } from "../../src/permission/PolicySource.js"
import * as TestInteractor from "../../src/testing/TestInteractor.js"
import * as ToolRegistry from "../../src/tool/ToolRegistry.js"
import * as ToolTrait from "../../src/tool/ToolTrait.js"
import * as Recorder from "./Recorder.js"

const odd = { parameters: { n: Schema.Number }, success: Schema.String } as const
const refuse = ({ n }: { readonly n: number }) => (n < 0 ? Effect.fail(`${n} is below zero`) : Effect.void)

/** Refused by its own validation below zero. */
export const Deploy = Tool.make("deploy", odd).pipe(ToolTrait.validate(refuse))
/** The same, and asks nobody. */
export const Note = Tool.make("note", odd).pipe(ToolTrait.validate(refuse)).annotate(ToolTrait.AutoApproved, true)
export const Look = Tool.make("look", odd).pipe(ToolTrait.validate(refuse)).annotate(Tool.Readonly, true)
export const Write = Tool.make("write", {
  parameters: { path: Schema.String, size: Schema.optional(Schema.NumberFromString), content: Schema.String },
  success: Schema.String
}).pipe(ToolTrait.editable(["content", "size"], "json"))
export const Shell = Tool.make("shell", { parameters: { command: Schema.String }, success: Schema.String })
  .pipe(ToolTrait.editable(["command"]))
  .annotate(ToolTrait.ShellCommand, "command")
/** The same, and every call of it runs in a sandbox. */
export const Boxed = Tool.make("boxed", { parameters: { command: Schema.String }, success: Schema.String })
  .annotate(ToolTrait.ShellCommand, "command")
  .annotate(ToolTrait.Sandboxed, true)
/** Ends plan mode. */
export const Finish = Tool.make("finish", { success: Schema.String }).annotate(ToolTrait.Kind, "switch_mode")
export const Shown = Tool.make("shown", { parameters: { how: Schema.String }, success: Schema.String }).pipe(
  ToolTrait.preview(({ how }) => {
    switch (how) {
      case "fails":
        return Effect.fail("the disk is away")
      case "crashes":
        return Effect.dieMessage("no")
      default:
        return Effect.succeed({ summary: `do ${how}`, details: how, format: "text" as const })
    }
  })
)
export const Brief = Tool.make("brief", { parameters: { text: Schema.String }, success: Schema.String }).pipe(
  ToolTrait.preview(() => Effect.succeed({ summary: "say it" }))
)
export const Broken = Tool.make("broken", { success: Schema.String }).pipe(
  ToolTrait.validate(() => Effect.dieMessage("the check is broken"))
)

const toolkit = Toolkit.make(Deploy, Note, Look, Write, Shell, Boxed, Finish, Shown, Brief, Broken)

const confined = (entry: ToolRegistry.Entry): ToolRegistry.Entry =>
  entry.sandboxed ? { ...entry, runs: () => "confined" } : entry

export const registry = Effect.provide(
  Effect.map(ToolRegistry.make(toolkit), ({ entries }) => ToolRegistry.fromEntries(entries.map(confined))),
  toolkit.toLayer({
    deploy: () => Effect.succeed(""),
    note: () => Effect.succeed(""),
    look: () => Effect.succeed(""),
    write: () => Effect.succeed(""),
    shell: () => Effect.succeed(""),
    boxed: () => Effect.succeed(""),
    finish: () => Effect.succeed(""),
    shown: () => Effect.succeed(""),
    brief: () => Effect.succeed(""),
    broken: () => Effect.succeed("")
  })
)

export const ses = (name: string): SessionId => name as SessionId

export interface Options {
  readonly policy?: PolicySource | undefined
  readonly guards?: ReadonlyArray<Guard.Guard> | undefined
  readonly authority?: PermissionGate.Authority | undefined
  readonly insteadOfAsking?: PermissionGate.Authority | undefined
  readonly person?: TestInteractor.Options | TestInteractor.Script | undefined
  readonly secrets?: ReadonlyArray<string> | undefined
  /** Instead of the person. */
  readonly interactor?: Interactor.Service | undefined
  readonly audit?: AuditTrail.Service | undefined
  readonly journal?: { readonly isFrozen: boolean } | undefined
}

export const make = (options: Options = {}) =>
  Effect.gen(function* () {
    const recorder = yield* Recorder.make()
    const script = options.person ?? {}
    const person = yield* TestInteractor.make(
      typeof script === "function" || Array.isArray(script) ? { script } : (script as TestInteractor.Options)
    )
    const tools = yield* registry
    const state = new PermissionState()
    const policy = {
      ...PermissionFile.policy(options.policy ?? {}),
      repositories: () => Effect.succeed("harmless" as const)
    }
    const redactor = Redaction.make(options.secrets)
    const gate = PermissionGate.make({
      policy,
      state,
      bus: recorder.bus,
      redactor,
      guards: options.guards ?? [],
      authority: options.authority,
      insteadOfAsking: options.insteadOfAsking,
      audit: options.audit,
      journal: options.journal
    })
    const entryOf = (name: string): ToolRegistry.Entry => {
      const entry = tools.get(name)
      if (entry === undefined) throw new Error(`no tool ${name}`)
      return entry
    }
    let calls = 0
    return {
      gate,
      person,
      state,
      policy,
      tools,
      entryOf,
      events: recorder.events,
      resolved: (): ReadonlyArray<AgentEvent.EventOf<"PermissionResolved">> =>
        recorder.events.filter((event) => event._tag === "PermissionResolved"),
      /** What the gate says about one call. */
      check: (tool: string, params: unknown, session = "root") =>
        Effect.suspend(() => {
          const entry = entryOf(tool)
          const call = { id: `call_${++calls}` as ToolCallId, name: tool, params }
          return gate.check({ call, entry, params: Either.getOrThrow(entry.decode(params)) }).pipe(
            Interactor.withInteractor(options.interactor ?? person.interactor),
            Origin.withOrigin({
              sessionId: ses(session),
              rootSessionId: ses("root"),
              agent: session === "root" ? "main" : `main/${session}`,
              depth: session === "root" ? 0 : 1,
              correlationId: "turn_1" as CorrelationId
            })
          )
        })
    }
  })
