import { assert, describe, it } from "@effect/vitest"
import * as ProviderError from "../../src/model/ProviderError.js"

const failure = (status: number, body: unknown) =>
  ProviderError.fromResponse({ model: "p/m" }, { status, headers: {}, body: JSON.stringify(body) })

describe("an account without money", () => {
  it("is called that, with the provider's words, and no retry", () => {
    const anthropic = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    const bodies: ReadonlyArray<readonly [status: number, words: string, body: (words: string) => unknown]> = [
      [400, anthropic, (message) => ({ type: "error", error: { type: "invalid_request_error", message } })],
      [403, "Billing is off", (message) => ({ type: "error", error: { type: "billing_error", message } })],
      [
        429,
        "You exceeded your current quota.",
        (message) => ({ error: { message, type: "insufficient_quota", code: "insufficient_quota" } })
      ],
      [
        429,
        "Billing hard limit has been reached",
        (message) => ({ error: { message, type: "invalid_request_error", code: "billing_hard_limit_reached" } })
      ],
      [429, "Your account is not active", (message) => ({ error: { message, type: "billing_not_active" } })],
      [402, "Insufficient credits. Add more", (message) => ({ error: { message, code: 402 } })],
      [
        402,
        "This request requires more credits, or fewer max_tokens",
        (message) => ({ error: { message, code: 402 } })
      ],
      [
        402,
        "Insufficient Balance",
        (message) => ({ error: { message, type: "unknown_error", code: "invalid_request_error" } })
      ],
      [
        429,
        "Your prepayment credits are depleted",
        (message) => ({ error: { code: 429, message, status: "RESOURCE_EXHAUSTED" } })
      ],
      [
        403,
        "This API method requires billing to be enabled",
        (message) => ({ error: { code: 403, message, status: "PERMISSION_DENIED" } })
      ],
      [
        403,
        "Your team has used all available credits or reached its monthly spending limit",
        (error) => ({ code: "x", error })
      ],
      [429, "Your account is suspended", (message) => ({ error: { message, type: "exceeded_current_quota_error" } })]
    ]
    for (const [status, words, body] of bodies) {
      const { _tag, message } = failure(status, body(words))
      assert.strictEqual(_tag, "Refused", words)
      assert.include(message, `p/m: the account has no credit left (${status}: ${words.replace(/\.$/, "")}`)
      assert.include(message, "Check its plan and billing.")
    }
  })

  it("is not what a limit that passes, a wrong key, or a word about money means", () => {
    const google = "You exceeded your current quota, please check your plan and billing details."
    const table = [
      [429, { error: { code: 429, message: google, status: "RESOURCE_EXHAUSTED" } }, "RateLimited"],
      [
        429,
        { error: { message: "Rate limit reached. Add a payment method to raise it.", code: "rate_limit_exceeded" } },
        "RateLimited"
      ],
      [401, { error: { message: "Incorrect API key provided", code: "invalid_api_key" } }, "Unauthorized"],
      [
        403,
        { error: { code: 403, message: "No permission for this model", status: "PERMISSION_DENIED" } },
        "Unauthorized"
      ],
      [
        400,
        { error: { message: "The prompt about credit cards is not allowed", type: "invalid_request_error" } },
        "Refused"
      ]
    ] as const
    for (const [status, body, tag] of table) {
      const { _tag, message } = failure(status, body)
      assert.strictEqual(_tag, tag)
      assert.notInclude(message, "no credit left")
    }
  })
})
