import * as Prompt from "@effect/ai/Prompt"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as ScriptedModel from "../../src/model/ScriptedModel.js"
const mk = (id?: string) => ScriptedModel.make({agents:{main:[{text:"hi", tools:[{name:"t", params:{a:1}, ...(id ? {id} : {})}]}, {text:"done"}]}})
const prompt = Prompt.make(Array.from({length: 1}, () => ({role:"user" as const, content:"x"})))
const opts = {agent:"main",sessionId:"s"}
const raw = Stream.fromChunk(Chunk.make(1,2,3))
await Effect.runPromise(Effect.gen(function*(){
  for (const [name, f] of [["raw", () => raw], ["fresh", ((m) => () => m.stream(prompt, [], opts))(mk())], ["static", ((m) => () => m.stream(prompt, [], opts))(mk("c"))], ["suspend", () => Stream.suspend(() => raw)], ["paged", () => Stream.unwrap(Effect.succeed(raw))]] as const)
  for (let w=0; w<3; w++) { const t0=process.cpuUsage(); for (let i=0;i<20000;i++) yield* Stream.runForEachChunk(f() as Stream.Stream<unknown>, () => Effect.void); const t=process.cpuUsage(t0); console.log(name, "us/stream", (t.user+t.system)/20000) }
}))
