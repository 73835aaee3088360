/** One interaction of every kind, with an answer in each of the forms in which it can be given. */
import * as Redacted from "effect/Redacted"
import type { SessionId, ToolCallId } from "../core/Id.js"
import * as Interaction from "../interaction/Interaction.js"
import * as PermissionOption from "../interaction/PermissionOption.js"

/**
 * A question and one answer to it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Sample<K extends Interaction.Kind = Interaction.Kind> {
  readonly interaction: Interaction.Interaction<K>
  readonly answer: Interaction.Answer<Interaction.Interaction<K>>
  /** The answer as data for a wire. */
  readonly encoded: unknown
  /** The answer as a person types it. */
  readonly line: string
}

export const password = "correct-horse-battery"

/** The secret values that no channel may show or send. */
export const secrets: ReadonlyArray<string> = [password]

export const samples: { readonly [K in Interaction.Kind]: Sample<K> } = {
  Approve: {
    interaction: new Interaction.Approve({
      toolCallId: "call_1" as ToolCallId,
      tool: "run_command",
      argumentsSummary: '{"command":"ls -la"}',
      arguments: { command: "ls -la" },
      approvalKey: "ls",
      options: PermissionOption.offered({ editable: true }),
      editable: { parameters: ["command"], format: "text", current: { command: "ls -la" } }
    }),
    answer: { decision: "deny", scope: "once", comment: "not here" },
    encoded: { decision: "deny", scope: "once", comment: "not here" },
    line: "c: not here"
  },
  grantStageTool: {
    interaction: new Interaction.GrantStageTool({
      stageExecutionId: "stage_1",
      attempt: 0,
      proposalId: "call_1",
      tool: "deploy",
      argsDigest: "0".repeat(64),
      argsSummary: "{}"
    }),
    answer: { outcome: "approve", note: "this time" },
    encoded: { outcome: "approve", note: "this time" },
    line: "approve: this time"
  },
  approveSubagentEnvelope: {
    interaction: new Interaction.ApproveSubagentEnvelope({
      subagentId: "sub_1",
      parentSessionId: "ses_1" as SessionId,
      depth: 1,
      requestedEnvelope: ["read_file"],
      promptSummary: "look around",
      model: { providerId: "offline", modelId: "offline" }
    }),
    answer: { outcome: "approve" },
    encoded: { outcome: "approve" },
    line: "approve"
  },
  Clarify: {
    interaction: new Interaction.Clarify({
      context: "before we start",
      questions: [
        {
          text: "Which database?",
          question_type: "single_choice",
          choices: ["postgres", "sqlite"],
          required: true,
          default_choice: 2
        },
        { text: "Why?", question_type: "free_text", choices: [], required: false }
      ]
    }),
    answer: { "1": { selected: 1, text: "postgres" }, "2": { value: "it scales" } },
    encoded: { "1": { selected: 1, text: "postgres" }, "2": { value: "it scales" } },
    line: "1\nit scales"
  },
  Ask: { interaction: new Interaction.Ask({ prompt: "Name?" }), answer: "Ada", encoded: "Ada", line: "Ada" },
  Select: {
    interaction: new Interaction.Select({ prompt: "Which?", options: ["red", "green", "blue"] }),
    answer: 1,
    encoded: 1,
    line: "2"
  },
  Confirm: {
    interaction: new Interaction.Confirm({ prompt: "Deploy?", default: false }),
    answer: true,
    encoded: true,
    line: "y"
  },
  Elicit: {
    interaction: new Interaction.Elicit({
      title: "Where shall it be deployed?",
      fields: [
        {
          name: "region",
          type: "choice",
          required: true,
          choices: ["eu", "us"],
          labels: ["Europe", "America"],
          default: "eu"
        },
        { name: "name", type: "string", title: "Name", required: true, minLength: 2, maxLength: 20, default: "api" },
        { name: "flags", type: "choices", required: false, choices: ["fast", "safe", "cheap"], maxItems: 2 },
        { name: "port", type: "integer", required: true, minimum: 1, maximum: 65535, default: 8080 },
        { name: "share", type: "number", required: false, minimum: 0, maximum: 1 },
        { name: "tls", type: "boolean", required: true, default: true },
        { name: "mail", type: "string", required: false, format: "email" }
      ]
    }),
    answer: { name: "web", region: "us", flags: ["fast", "safe"], port: 443, tls: false, mail: "ada@example.com" },
    encoded: { name: "web", region: "us", flags: ["fast", "safe"], port: 443, tls: false, mail: "ada@example.com" },
    line: "america\nweb\n1, safe\n443\n\nno\nada@example.com"
  },
  "Auth.DeviceCode": {
    interaction: new Interaction.AuthDeviceCode({ url: "https://example.com/device", code: "WDJB", expiresAt: 60_000 }),
    answer: "completed",
    encoded: "completed",
    line: "done"
  },
  "Auth.Password": {
    interaction: new Interaction.AuthPassword({ prompt: "Password?" }),
    answer: Redacted.make(password),
    encoded: password,
    line: password
  }
}
