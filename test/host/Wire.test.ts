import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Wire from "../../src/host/Wire.js"

const said = (line: string): string | undefined => Either.getOrUndefined(Either.flip(Wire.parse(line)))

const name = "x".repeat(1_000)
const aFile = 'must be {"path": "…"} or {"base64": "…"}, with "name" and "mediaType" if wanted.'
const sentences = {
  hello: "it is not a JSON object.",
  '{"_tag":"Send"': "it is not a JSON object.",
  "{]}": "it is not a JSON object.",
  '{"_tag":}': "it is not JSON.",
  '{"text":"a"}': '"_tag" must be Send, Answer, Interrupt, Permissions or Shutdown.',
  '{"_tag":"send"}': '"_tag" must be Send, Answer, Interrupt, Permissions or Shutdown.',
  '{"_tag":"Send"}': 'Send needs "text" or "files".',
  '{"_tag":"Send","text":" "}': '"text" of Send must be a text that is not blank.',
  '{"_tag":"Send","text":5}': '"text" of Send must be a text that is not blank.',
  '{"_tag":"Send","text":"a","wen":"now"}': 'Send has no field "wen".',
  [`{"_tag":"Send","text":"a","${name}":1}`]: `Send has no field "${name.slice(0, 199)}…".`,
  '{"_tag":"Send","text":"a","when":"later"}': '"when" of Send must be "now" or "idle".',
  '{"_tag":"Send","text":"a","target":[]}': '"target" of Send must be the name of an agent, or a list of them.',
  '{"_tag":"Send","text":"a","id":""}': '"id" of Send must be a text of 1 to 200 characters.',
  '{"_tag":"Send","files":[]}': '"files" of Send is empty.',
  '{"_tag":"Send","files":"x"}': `"files" of Send must be a list, each of them ${aFile.slice(8)}`,
  '{"_tag":"Send","files":[{"path":"a"},{"base64":"%"}]}': `"files.1" of Send ${aFile}`,
  '{"_tag":"Answer","answer":"y"}': '"requestId" of Answer is missing.',
  '{"_tag":"Answer","requestId":5}': '"requestId" of Answer must be the id of a request.',
  '{"_tag":"Answer","requestId":"a","by":7}': '"by" of Answer must be a name of at most 200 characters.',
  '{"_tag":"Interrupt","toolCallId":""}': '"toolCallId" of Interrupt must be the id of a call.',
  '{"_tag":"Permissions","command":1}': '"command" of Permissions must be a text.',
  '{"_tag":"Shutdown","x":1}': 'Shutdown has no field "x".'
}

describe("a command of another process", () => {
  it("that is wrong is told in one sentence, which says once what is wrong", () => {
    assert.deepStrictEqual(Object.fromEntries(Object.keys(sentences).map((line) => [line, said(line)])), sentences)
  })
})
