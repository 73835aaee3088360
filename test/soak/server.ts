/**
 * A server under races, kills and load: `npm run soak:server`, or `npm run soak:server -- races 1000`, `-- kills 20`,
 * `-- load 1000`, `-- attacks 40`, `-- heap 30`. It needs `npm run build:bin`, because a real program is killed.
 *
 * - races: each question of one session is answered over HTTP, in an attached editor and at an attached terminal at once.
 *   One answer counts, and the other dialogs close.
 * - kills: a server with 100 open questions is killed at a random moment of random answers. A client follows all events
 *   and is cut at random bytes. Afterwards it has what a client without cuts has.
 * - load: questions of many sessions are answered as fast as a server takes it; 500 clients follow all events.
 * - attacks: clients of each kind of siege take what they can get, for so many seconds. Twenty ordinary clients are served,
 *   and the server has a heap of 512 MB.
 * - heap: for so many minutes, sessions begin, ask, end and are deleted at 50 times the usual pace. Clients come and go.
 *   The heap after a collection stays as it is.
 */
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as os from "node:os"
import * as path from "node:path"
import { createInterface } from "node:readline"
import * as pty from "@lydell/node-pty"
import * as Host from "../../src/host/Host.js"
import * as Server from "../../src/http/Server.js"
import * as Token from "../../src/http/Token.js"
import * as Siege from "../kit/Siege.js"

class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

const say = (text: string) => process.stdout.write(`${text}\n`)

const check = (holds: boolean, message: string): Effect.Effect<void, Failed> =>
  holds ? Effect.void : new Failed({ message })

const load = () => `load ${os.loadavg()[0]?.toFixed(1)} on ${os.availableParallelism()} cores`

const quantile = (times: ReadonlyArray<number>, part: number): number =>
  [...times].sort((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0

const rounded = (value: number) => Math.round(value * 10) / 10

// -----------------------------------------------------------------------------------------------------------------
// a server, and its clients
// -----------------------------------------------------------------------------------------------------------------

interface Place {
  readonly at: (...parts: ReadonlyArray<string>) => string
  readonly environment: Readonly<Record<string, string>>
  /** A model that asks so often, and says that it is done. */
  readonly model: string
}

const running = { name: "run_command", params: { command: "true" } }
const asking = { name: "ask_user", params: { prompt: "Which colour?" } }

const place = (
  asks: number,
  toolOf: (number: number) => object = () => running
): Effect.Effect<Place, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "assent-server-")))),
      (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true }))
    ),
    (root) => {
      const at = (...parts: ReadonlyArray<string>) => path.join(root, ...parts)
      for (const name of ["config", "home", "workspace"]) fs.mkdirSync(at(name))
      const main = [...Array.from({ length: asks }, (_, index) => ({ tools: [toolOf(index + 1)] })), { text: "done" }]
      fs.writeFileSync(at("script.json"), JSON.stringify({ version: 1, agents: { main } }))
      fs.writeFileSync(at("config", "config.json"), JSON.stringify({ limits: { max_steps: asks + 10 } }))
      return {
        at,
        model: `script:${at("script.json")}`,
        environment: {
          PATH: process.env["PATH"] ?? "",
          HOME: at("home"),
          ASSENT_CONFIG_DIR: at("config"),
          ASSENT_STATE_DIR: at("state"),
          ASSENT_SANDBOX: "off"
        }
      }
    }
  )

interface Answer {
  readonly status: number
  // Bodies differ by path.
  readonly body: any
}

interface Client {
  readonly url: string
  readonly token: string
  /** Connections that are kept. */
  readonly agent: http.Agent
}

/** Sends JSON; the status is 0 if no answer came, and the body says why. */
const call = (
  { agent, token, url }: Client,
  path: string,
  body?: unknown,
  method = body === undefined ? "GET" : "POST"
): Effect.Effect<Answer> =>
  Effect.async((resume) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const request = http.request(`${url}${path}`, { agent, headers, method }, (answer) => {
      let text = ""
      answer.setEncoding("utf8")
      answer.on("data", (data) => (text += data))
      answer.on("error", ({ message }) => resume(Effect.succeed({ status: 0, body: message })))
      answer.on("end", () => resume(Effect.sync(() => ({ status: answer.statusCode ?? 0, body: parsed(text) }))))
    })
    request.on("error", ({ message }) => resume(Effect.succeed({ status: 0, body: message })))
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const until = <A, E>(
  effect: Effect.Effect<A, E>,
  holds: (value: A) => boolean,
  what: string,
  pause: Duration.DurationInput = "20 millis"
): Effect.Effect<A, E | Failed> =>
  Effect.timeoutFail(Effect.repeat(effect, { until: holds, schedule: Schedule.spaced(pause) }), {
    duration: "5 minutes",
    onTimeout: () => new Failed({ message: `It has not come true: ${what}.` })
  }).pipe(Effect.zipRight(effect))

interface Piece {
  readonly id: string | undefined
  readonly event: string
  readonly data: any
}

const parse = (block: string): Piece | undefined => {
  const fields = new Map(
    block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const)
  )
  const data = fields.get("data")
  return data === undefined
    ? undefined
    : { id: fields.get("id"), event: fields.get("event") ?? "message", data: JSON.parse(data) }
}

/** Reads a stream of events until `take` says so, the stream ends, or so many bytes have come. */
const follow = (
  { token, url }: Pick<Client, "token" | "url">,
  path: string,
  after: string | undefined,
  take: (piece: Piece) => boolean | void,
  most = Infinity
): Effect.Effect<void> =>
  Effect.async((resume) => {
    const headers = { authorization: `Bearer ${token}`, ...(after === undefined ? {} : { "last-event-id": after }) }
    let text = ""
    let size = 0
    const end = () => {
      request.destroy()
      resume(Effect.void)
    }
    const request = http.request(`${url}${path}`, { headers, agent: false }, (answer) => {
      if (answer.statusCode !== 200) return end()
      answer.setEncoding("utf8")
      answer.on("data", (data: string) => {
        text += data.slice(0, Math.max(0, most - size))
        size += data.length
        const blocks = text.split("\n\n")
        text = blocks.pop() ?? ""
        for (const block of blocks) {
          const piece = parse(block)
          if (piece !== undefined && take(piece) === true) return end()
        }
        if (size >= most) end()
      })
      answer.on("error", end)
      answer.on("end", end)
    })
    request.on("error", end)
    request.end()
    return Effect.sync(() => request.destroy())
  })

interface Running extends Client {
  readonly child: ChildProcess
  /** The line that it prints next. */
  readonly line: Effect.Effect<string, Failed>
}

/** A process that prints the address of its server, until the scope closes. */
const started = (
  args: ReadonlyArray<string>,
  { at, environment }: Place
): Effect.Effect<Running, Failed, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, args, {
          cwd: at("workspace"),
          env: environment,
          stdio: ["ignore", "pipe", "inherit"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const lines = createInterface({ input: child.stdout })
    const line = Effect.async<string, Failed>((resume) => {
      const ended = (code: number | null) => resume(new Failed({ message: `The server ended with ${code}.` }))
      child.once("exit", ended)
      lines.once("line", (line) => {
        child.off("exit", ended)
        resume(Effect.succeed(line))
      })
    })
    const [url = "", token = ""] = (yield* line).split("/#token=")
    return { child, line, url, token, agent: new http.Agent({ keepAlive: true, maxSockets: 64 }) }
  })

const program = path.resolve("dist/bin/assent.js")

const serve = (where: Place, port = "0", ...node: ReadonlyArray<string>) =>
  started([...node, program, "serve", "--port", port, "--model", where.model, "--log-level", "error"], where)

/** Milliseconds of processor time of a process so far. */
const cpuOf = (pid: number | undefined): number => {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const megabytesOf = (pid: number | undefined): number =>
  Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_000

const askedIn = (answer: Answer): ReadonlyArray<string> =>
  answer.body?.requests?.map((one: { request: { requestId: string } }) => one.request.requestId) ?? []

/** Begins a session with words. */
const begin = (client: Client, id: string) =>
  Effect.gen(function* () {
    const made = yield* call(client, "/v1/sessions", { id })
    const sent = yield* call(client, `/v1/sessions/${id}/messages`, { text: "go", id: "first" })
    yield* check(made.status === 200 && sent.status === 200, `${id} does not begin: ${JSON.stringify([made, sent])}`)
  })

// -----------------------------------------------------------------------------------------------------------------
// races
// -----------------------------------------------------------------------------------------------------------------

/** What a surface of a race has seen of each question, in milliseconds since the epoch. */
interface Surface {
  readonly asked: Map<string, number>
  readonly answered: Map<string, number>
  readonly closed: Map<string, number>
  /** It answers this question, unless its dialog is closed. */
  readonly answer: (question: string) => void
}

const surface = (answer: (question: string) => void): Surface => {
  const seen: Surface = {
    asked: new Map(),
    answered: new Map(),
    closed: new Map(),
    answer: (question) => {
      if (seen.closed.has(question)) return
      seen.answered.set(question, Date.now())
      answer(question)
    }
  }
  return seen
}

/** A question of a race, by the command that it is about. */
const questionIn = (text: string): string | undefined => /: question (\d+)/.exec(text)?.[1]

/** An editor at the server, as lines of JSON, with what it heard of answers of others. */
const editor = (where: Place, client: Client, session: string) =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, [program, "acp", "--attach", `${client.url}/#token=${client.token}`], {
          cwd: where.at("workspace"),
          env: where.environment,
          stdio: ["pipe", "pipe", "inherit"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const told: Array<string> = []
    const loaded = yield* Deferred.make<void>()
    const open = new Map<string, { readonly id: unknown; readonly optionId: unknown }>()
    const write = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
    const seen = surface((question) => {
      const { id, optionId } = open.get(question) ?? {}
      write({ id, result: { outcome: { outcome: "selected", optionId } } })
    })
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { id, method, params } = JSON.parse(line)
      if (params?.update?.sessionUpdate === "agent_message_chunk") told.push(...heardIn(params.update.content.text))
      if (id === 2 && method === undefined) Effect.runSync(Deferred.succeed(loaded, undefined))
      if (method === "session/request_permission") {
        const optionId = params.options.find((one: { kind: string }) => one.kind === "allow_once")?.optionId
        const question = questionIn(line)
        if (question === undefined) return
        open.set(question, { id, optionId })
        seen.asked.set(question, Date.now())
      }
      if (method === "$/cancel_request")
        for (const [question, { id }] of open) {
          if (id !== params.requestId) continue
          seen.closed.set(question, Date.now())
          if (!seen.answered.has(question)) write({ id, result: { outcome: { outcome: "cancelled" } } })
        }
    })
    write({ id: 1, method: "initialize", params: { protocolVersion: 1, clientCapabilities: {} } })
    write({
      id: 2,
      method: "session/load",
      params: { sessionId: session, cwd: where.at("workspace"), mcpServers: [] }
    })
    yield* Deferred.await(loaded)
    return { seen, told: () => told }
  })

/** A person at a terminal, with what it has said of answers of others. */
const terminal = (where: Place, client: Client, session: string) =>
  Effect.gen(function* () {
    const attach = [program, "chat", "--attach", `${client.url}/#token=${client.token}`, "--resume", session]
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        pty.spawn(process.execPath, attach, {
          cols: 200,
          rows: 50,
          cwd: where.at("workspace"),
          env: { ...where.environment, TERM: "xterm-256color", ASSENT_STATUS_LINE: "off" }
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    const ready = yield* Deferred.make<void>()
    // What came since the dialog of this question was drawn.
    let [question, text]: [string, string] = ["0", ""]
    const told: Array<string> = []
    const seen = surface(() => child.write("y"))
    child.onData((data) => {
      text += data
      if (text.includes("/help for")) Effect.runSync(Deferred.succeed(ready, undefined))
      const plain = text.replace(/\u001b\[[\d;?]*[A-Za-z]/g, "")
      if (/\(closed: answered elsewhere/.test(plain) && !seen.closed.has(question))
        seen.closed.set(question, Date.now())
      const next = [...plain.matchAll(/run : question (\d+)\b/g)].find(([, one]) => Number(one) > Number(question))
      if (next?.[1] === undefined) return
      told.push(...heardIn(plain.slice(0, next.index)))
      question = next[1]
      text = plain.slice(next.index)
      seen.asked.set(question, Date.now())
    })
    yield* Deferred.await(ready)
    return { seen, told: () => [...told, ...heardIn(text)] }
  })

/** The winners that a person heard of. */
const heardIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/The question was answered by ([^\s.]+)\.|Too late: (\S+) answered first\./g)].map(
    ([, by = "", first = ""]) => by + first
  )

/** Milliseconds before a person answers a question: a key that comes at once was meant for something else. */
const thought = 700

/** Milliseconds in which all of them answer. */
const together = 150

/** Milliseconds from a key at the terminal to its answer: a second letter may follow. */
const settling = 300

const races = (count: number) =>
  Effect.gen(function* () {
    const asking = (number: number) => ({ name: "run_command", params: { command: `: question ${number}` } })
    const where = yield* place(count, asking)
    const client = yield* serve(where)
    yield* call(client, "/v1/sessions", { id: "raced" })
    const { seen: inEditor, told: toEditor } = yield* editor(where, client, "raced")
    const { seen: atTerminal, told: toTerminal } = yield* terminal(where, client, "raced")
    const answered = new Map<string, Array<string>>()
    const outcomes = new Map<string, Answer>()
    const questions = new Map<string, string>()
    /** When a question was answered, and when that was an event over HTTP. */
    const at = new Map<string, number>()
    const heard = new Map<string, number>()
    const racers: Array<Promise<void>> = []
    const race = (requestId: string, question: string) =>
      Effect.gen(function* () {
        // They hear of a question later than the events do.
        while (!inEditor.asked.has(question) || !atTerminal.asked.has(question)) yield* Effect.sleep("5 millis")
        const after = (millis: number) => Effect.sleep(thought + millis + Math.random() * together)
        const over = Effect.map(
          Effect.zipRight(after(settling), call(client, `/v1/requests/${requestId}/answer`, { answer: "y" })),
          (answer) => outcomes.set(requestId, answer)
        )
        const others = [
          Effect.zipRight(
            after(settling),
            Effect.sync(() => inEditor.answer(question))
          ),
          Effect.zipRight(
            after(0),
            Effect.sync(() => atTerminal.answer(question))
          )
        ]
        yield* Effect.all([over, ...others], { concurrency: "unbounded", discard: true })
      })
    yield* call(client, "/v1/sessions/raced/messages", { text: "go" })
    const began = performance.now()
    yield* follow(client, "/v1/sessions/raced/events", undefined, ({ data }) => {
      const question = questionIn(JSON.stringify(data))
      if (data._tag === "InteractionRequested" && question !== undefined) {
        questions.set(data.requestId, question)
        racers.push(Effect.runPromise(race(data.requestId, question)))
      }
      if (data._tag === "InteractionAnswered") {
        answered.set(data.requestId, [...(answered.get(data.requestId) ?? []), data.by])
        at.set(questions.get(data.requestId) ?? "", data.at)
        heard.set(questions.get(data.requestId) ?? "", Date.now())
      }
      return data._tag === "TurnEnded"
    })
    yield* Effect.promise(() => Promise.all(racers))
    const took = performance.now() - began
    const over = [...outcomes.values()]
    const won = over.filter(({ status }) => status === 200).length
    const lost = over.filter(({ status }) => status === 409)
    yield* check(outcomes.size === count, `${outcomes.size} of ${count} questions came over HTTP.`)
    yield* check(answered.size === count, `${answered.size} of ${count} questions were answered.`)
    yield* check(
      [...answered.values()].every((by) => by.length === 1),
      "A question was answered twice."
    )
    yield* check(
      won + lost.length === count,
      `HTTP heard something else: ${JSON.stringify(over.map((one) => one.status))}`
    )
    yield* check(
      lost.every(({ body }) => body._tag === "InteractionAlreadyAnswered" && body.winner !== ""),
      "A late answer did not hear of the winner."
    )
    const audit = fs
      .readdirSync(where.at("state"), { recursive: true })
      .map((name) => where.at("state", String(name)))
      .filter((file) => file.includes("audit") && fs.statSync(file).isFile())
      .flatMap((file) => fs.readFileSync(file, "utf8").split("\n"))
      .flatMap((line) => (line.includes('"class":"permission"') ? [JSON.parse(line)] : []))
    for (const requestId of answered.keys()) {
      const records = audit.filter((one) => one.requestId === requestId)
      yield* check(
        records.length === 1 && records[0].outcome === "granted",
        `The audit has ${records.length} records of ${requestId}.`
      )
    }
    // A dialog is closed by its answer or by that of another.
    const isOver = ({ answered, closed }: Surface) =>
      [...questions.values()].every((question) => answered.has(question) || closed.has(question))
    yield* until(
      Effect.sync(() => isOver(inEditor) && isOver(atTerminal)),
      (all) => all,
      "the dialogs are closed"
    )
    yield* Effect.sleep("1 second")
    const [by] = [...answered.values()].flat()
    const names = [...toEditor(), ...toTerminal()]
    yield* check(
      names.every((name) => name === by),
      `Losers heard of ${JSON.stringify([...new Set(names)])}.`
    )
    const [wonInEditor, wonAtTerminal] = [count - toEditor().length, count - toTerminal().length]
    yield* check(
      won + wonInEditor + wonAtTerminal === count,
      `${won} won over HTTP, ${wonInEditor} in the editor, ${wonAtTerminal} at the terminal.`
    )
    say(
      `races: ${count} questions, ${won} won over HTTP, ${wonInEditor} in the editor, ${wonAtTerminal} at the terminal; ` +
        `all losers heard of the winner, each answer is in the audit once; ${rounded(took / count)} ms each; ${load()}`
    )
    const behind = (then: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>) => {
      const times = [...then].map(([question, time]) => Math.max(0, time - (before.get(question) ?? NaN)))
      return (
        `p50 ${quantile(times, 0.5)} ms, p99 ${quantile(times, 0.99)} ms, most ${Math.max(...times)} ms, ` +
        `${times.filter((time) => time > 100).length} of ${times.length} above 100 ms`
      )
    }
    say(`races: from an answer to its event over HTTP: ${behind(heard, at)}`)
    for (const [name, { closed }] of [["editor", inEditor] as const, ["terminal", atTerminal] as const]) {
      say(`races: from an answer to the close of the dialog, ${name}: ${behind(closed, at)}`)
      say(`races: from its event over HTTP to the close, ${name}: ${behind(closed, heard)}`)
    }
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// kills
// -----------------------------------------------------------------------------------------------------------------

const sessions = 100

/** Follows all events, cut at random bytes, and begins again behind the last id. */
const cutClient = (client: Pick<Client, "token" | "url">) => {
  const taken: Array<string> = []
  let [first, last, cuts]: [string | undefined, string | undefined, number] = [undefined, undefined, 0]
  const once = Effect.suspend(() => {
    cuts++
    // Events before the one with the id come again.
    let pending: Array<string> = []
    return follow(
      client,
      "/v1/events",
      last,
      ({ data, event, id }) => {
        if (event === "snapshot") {
          first ??= id
          last = id
        } else if (event === "message") pending.push(JSON.stringify(data))
        if (event !== "message" || id === undefined) return
        last = id
        taken.push(...pending)
        pending = []
      },
      200 + Math.random() * 50_000
    )
  })
  return {
    taken,
    run: Effect.forever(Effect.zipRight(once, Effect.sleep("5 millis"))),
    state: () => ({ first, last, cuts })
  }
}

const kills = (rounds: number) =>
  Effect.gen(function* () {
    const where = yield* place(1_000)
    const first = yield* serve(where)
    const port = new URL(first.url).port
    const client = cutClient(first)
    yield* Effect.forkScoped(client.run)
    yield* until(Effect.sync(client.state), ({ first }) => first !== undefined, "the client has a place")
    const ids = Array.from({ length: sessions }, (_, index) => `k${index}`)
    yield* Effect.forEach(ids, (id) => begin(first, id), { concurrency: 8, discard: true })
    let now = first
    const starts: Array<number> = []
    const times: Array<number> = []
    const answers = new Map<string, number>()
    for (let round = 0; round < rounds; round++) {
      const open = askedIn(
        yield* until(
          call(now, "/v1/requests"),
          (answer) => askedIn(answer).length === sessions,
          "all questions are open"
        )
      )
      // Some are answered while the server is killed.
      const sent = open.filter(() => Math.random() < 0.1)
      const client = now
      const answering = yield* Effect.fork(
        Effect.forEach(
          sent,
          (requestId) =>
            Effect.map(call(client, `/v1/requests/${requestId}/answer`, { answer: "y", id: "mine" }), ({ status }) =>
              answers.set(requestId, status)
            ),
          { concurrency: 4, discard: true }
        )
      )
      yield* Effect.sleep(Math.random() * 150)
      now.child.kill("SIGKILL")
      yield* answering
      const began = performance.now()
      now = yield* serve(where, port)
      starts.push(performance.now() - began)
      const left = open.filter((id) => !sent.includes(id))
      yield* until(
        call(now, "/v1/requests"),
        (answer) => {
          const there = new Set(askedIn(answer))
          return left.every((id) => there.has(id))
        },
        "the questions are open under their ids"
      )
      times.push(performance.now() - began - (starts.at(-1) ?? 0))
      // What was answered stays answered; what was cut off is answered now, once.
      for (const requestId of sent) {
        const again = yield* call(now, `/v1/requests/${requestId}/answer`, { answer: "y", id: "mine" })
        yield* check(again.status === 200, `${requestId} was ${answers.get(requestId)}, then ${JSON.stringify(again)}.`)
        const other = yield* call(now, `/v1/requests/${requestId}/answer`, { answer: "n" })
        yield* check(other.status === 409, `${requestId} is answered twice: ${other.status}.`)
      }
    }
    yield* until(call(now, "/v1/requests"), (answer) => askedIn(answer).length === sessions, "all questions are open")
    const { cuts, first: begun } = client.state()
    const whole: Array<string> = []
    // Nothing more happens: both have the same when the last event is there.
    yield* until(
      Effect.suspend(() => {
        whole.length = 0
        return Effect.timeoutOption(
          follow(
            now,
            "/v1/events",
            begun,
            ({ data, event }) => void (event === "message" && whole.push(JSON.stringify(data)))
          ),
          "3 seconds"
        )
      }),
      () => whole.length === client.taken.length,
      "the client that was cut has as many events as the journal"
    )
    yield* check(
      whole.every((one, index) => one === client.taken[index]),
      "The client that was cut has other events than the journal."
    )
    say(
      `kills: ${rounds} times ${sessions} open questions, back ${Math.round(quantile(times, 0.5))} ms ` +
        `(most ${Math.round(Math.max(...times))} ms) after the start of the server, ` +
        `which took ${Math.round(quantile(starts, 0.5))} ms (most ${Math.round(Math.max(...starts))} ms); ${answers.size} answers beside kills, each once; ` +
        `${whole.length} events, ${cuts} cuts, none missing and none twice; ${load()}`
    )
    yield* check(Math.max(...times) <= 3_000, "Questions were back after more than 3 seconds.")
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// load
// -----------------------------------------------------------------------------------------------------------------

const streams = 500

/** A server with room for many streams, in this process. */
const child = (root: string) =>
  Effect.gen(function* () {
    const at = (name: string) => path.join(root, name)
    const workspaces = [at("workspace")]
    const host = yield* Host.make({
      workspaces,
      overrides: { model: `script:${at("script.json")}` },
      notify: () => {}
    })
    const kept = yield* Token.open(at("config/serve-token"))
    const server = yield* Server.make({ host: "127.0.0.1", port: 0, workspaces, streams: streams + 10 }).pipe(
      Effect.provide(Token.layer(kept, { name: "ada" })),
      Effect.provideService(Host.Host, host)
    )
    say(`${server.url}/#token=${Redacted.value(yield* kept.value)}`)
    const collect = () => (globalThis as { readonly gc?: () => void }).gc?.()
    process.on("SIGUSR2", () => {
      collect()
      // What had a finalizer goes with the second one.
      setImmediate(() => {
        collect()
        say(JSON.stringify(process.memoryUsage()))
      })
    })
    yield* Effect.never
  }).pipe(Effect.scoped, Effect.provide(NodeContext.layer))

const loaded = (count: number, store: string | undefined) =>
  Effect.gen(function* () {
    const where = yield* place(1, () => asking)
    const environment = { ...where.environment, ...(store === undefined ? {} : { ASSENT_STORE: store }) }
    const [file = ""] = process.argv.slice(1)
    const client = yield* started([...process.execArgv, file, "child", where.at()], { ...where, environment })
    const { pid } = client.child
    const opened = (names: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        yield* Effect.forEach(names, (id) => begin(client, id), { concurrency: 16, discard: true })
        const all = (answer: Answer) => askedIn(answer).length === names.length
        return askedIn(yield* until(call(client, "/v1/requests"), all, "all questions are open", "500 millis"))
      })
    const give = (requestId: string) => call(client, `/v1/requests/${requestId}/answer`, { answer: "red" })
    const asked = yield* opened(Array.from({ length: count }, (_, index) => `s${index}`))
    const memory = megabytesOf(pid)
    let ended = 0
    yield* Effect.forkScoped(
      follow(client, "/v1/events", undefined, ({ data }) => void (data._tag === "TurnEnded" && ended++))
    )
    const before = cpuOf(pid)
    const began = performance.now()
    const outcomes = yield* Effect.forEach(asked, give, { concurrency: 32 })
    const took = performance.now() - began
    const wrong = outcomes.filter(({ status }) => status !== 200)
    yield* check(wrong.length === 0, `${wrong.length} answers failed: ${JSON.stringify(wrong[0])}`)
    yield* until(
      Effect.sync(() => ended),
      (all) => all === count,
      "each turn has ended"
    )
    const cpu = (cpuOf(pid) - before) / count
    say(
      `load, ${store ?? "a file and the audit on disk"}: ${count} sessions with an open question ${Math.round(memory)} MB; ` +
        `${Math.round((count / took) * 1_000)} answers/s, ${rounded(cpu)} ms of the processor each with the end of its turn; ${load()}`
    )
    const some = yield* opened(Array.from({ length: 20 }, (_, index) => `e${index}`))
    const latencies: Array<number> = []
    const connected = new Set<number>()
    yield* Effect.forkScoped(
      Effect.forEach(
        Array.from({ length: streams }, (_, index) => index),
        (index) =>
          // A client that is refused comes again.
          follow(client, "/v1/events", undefined, ({ data, event }) => {
            if (event === "snapshot") connected.add(index)
            else if (typeof data.at === "number") latencies.push(Date.now() - data.at)
          }).pipe(Effect.zipRight(Effect.sleep("1 second")), Effect.forever),
        { concurrency: "unbounded", discard: true }
      )
    )
    yield* until(
      Effect.sync(() => connected.size),
      (count) => count === streams,
      "all streams are open"
    )
    const idle = cpuOf(pid)
    // At a pace that a server has at work, not in a burst.
    yield* Effect.forEach(some, (requestId) => Effect.zipLeft(give(requestId), Effect.sleep("1 second")), {
      discard: true
    })
    yield* until(
      Effect.sync(() => latencies.length),
      (count) => count >= some.length * streams,
      "events have come"
    )
    say(
      `events, ${store ?? "a file"}: ${latencies.length} to ${streams} clients, from their time to the client ` +
        `p50 ${quantile(latencies, 0.5)} ms, p99 ${quantile(latencies, 0.99)} ms, ` +
        `${Math.round(((cpuOf(pid) - idle) * 1_000) / latencies.length)} µs of the processor each; ${load()}`
    )
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// attacks
// -----------------------------------------------------------------------------------------------------------------

/** A siege of a process of its own, which says each second how it goes. */
const siege = (name: string, url: string, token: string, sessionId: string) =>
  Effect.gen(function* () {
    const began = performance.now()
    const { open, statuses } = yield* Siege.sieges[name]?.({ url, token, sessionId }) ?? Effect.dieMessage(name)
    let held = 0
    yield* Effect.forever(
      Effect.gen(function* () {
        yield* Effect.sleep("1 second")
        const counts = new Map<number, number>()
        for (const status of statuses()) counts.set(status, (counts.get(status) ?? 0) + 1)
        if (open() > 0) held = (performance.now() - began) / 1_000
        const answers = [...counts].map(([status, count]) => `${count} times ${status}`).join(", ") || "no answer"
        say(`${open()} connections are left, the last one went after ${Math.round(held)} s, ${answers}`)
      })
    )
  }).pipe(Effect.scoped)

/** Ordinary clients beside each siege. */
const honest = 20

const attacks = (seconds: number) =>
  Effect.gen(function* () {
    const where = yield* place(1)
    // What is kept for strangers would end it.
    const client = yield* serve(where, "0", "--max-old-space-size=512")
    yield* begin(client, "ordinary")
    const target = { ...client, sessionId: "ordinary" }
    const [file = ""] = process.argv.slice(1)
    const measured = (name: string, beside: Effect.Effect<string>) =>
      Effect.gen(function* () {
        const { failures, times } = yield* Siege.measureAll(target, seconds * 1_000, honest)
        say(
          `attacks: ${name}: ${times.length} answers to ${honest} ordinary clients, p50 ${rounded(quantile(times, 0.5))} ms, ` +
            `p99 ${rounded(quantile(times, 0.99))} ms, most ${rounded(times.at(-1) ?? NaN)} ms, ` +
            `${failures.length} failed ${JSON.stringify([...new Set(failures)])}; ${yield* beside}; ` +
            `${Math.round(megabytesOf(client.child.pid))} MB RSS; ${load()}`
        )
      })
    yield* measured("none", Effect.succeed("alone"))
    for (const name of Object.keys(Siege.sieges))
      yield* Effect.gen(function* () {
        const { url, token } = client
        const child = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn(process.execPath, [file, "siege", name, url, token, "ordinary"], {
              stdio: ["ignore", "pipe", "inherit"]
            })
          ),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        let last = ""
        createInterface({ input: child.stdout }).on("line", (line) => (last = line))
        yield* measured(
          name,
          Effect.sync(() => last)
        )
      }).pipe(Effect.scoped)
    yield* Effect.sleep("3 seconds")
    yield* measured("afterwards", Effect.succeed("alone"))
    const [requestId = ""] = askedIn(yield* call(client, "/v1/requests"))
    const { status } = yield* call(client, `/v1/requests/${requestId}/answer`, { answer: "y" })
    yield* check(status === 200, `The question is answered with ${status}.`)
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// heap
// -----------------------------------------------------------------------------------------------------------------

/** Usual: a session with two questions, and a client that comes and goes, every 20 seconds. */
const pause = { usual: 20_000, times: 50 }

/** Sessions and clients at once. On a machine that is busy with other work, the next one waits. */
const atOnce = 40

/** Minutes until what is kept up to a limit is full. */
const warm = 5

/** The heap may grow by this part. */
const most = 0.05

const heap = (minutes: number) =>
  Effect.gen(function* () {
    const where = yield* place(2)
    const [file = ""] = process.argv.slice(1)
    const made = yield* started([...process.execArgv, "--expose-gc", file, "child", where.at()], where)
    // A connection for each call: the server closes those that are idle.
    const client = { ...made, agent: new http.Agent() }
    let [last, sessions, answers, clients, working, isPaused]: [
      string | undefined,
      number,
      number,
      number,
      number,
      boolean
    ] = [undefined, 0, 0, 0, 0, false]
    /** What the sessions at work are about to hear. */
    const heard = new Map<string, Queue.Queue<Piece>>()
    yield* Effect.forkScoped(
      Effect.forever(
        follow(client, "/v1/events", last, (piece) => {
          last = piece.id ?? last
          heard.get(piece.data.rootSessionId)?.unsafeOffer(piece)
        })
      )
    )
    yield* until(
      Effect.sync(() => last),
      (place) => place !== undefined,
      "the events have a place"
    )
    const next = (queue: Queue.Queue<Piece>, tag: string) =>
      Effect.repeat(Queue.take(queue), { until: ({ data }) => data._tag === tag }).pipe(
        Effect.timeoutFail({ duration: "2 minutes", onTimeout: () => new Failed({ message: `There was no ${tag}.` }) })
      )
    const life = (id: string) =>
      Effect.gen(function* () {
        const queue = yield* Queue.unbounded<Piece>()
        heard.set(id, queue)
        yield* begin(client, id)
        for (const words of [
          ["y", "n"],
          ["n", "y"]
        ]) {
          const { data } = yield* next(queue, "InteractionRequested")
          const path = `/v1/requests/${data.requestId}/answer`
          const outcomes = yield* Effect.forEach(words, (answer) => call(client, path, { answer }), {
            concurrency: "unbounded"
          })
          const statuses = outcomes.map(({ status }) => status).sort()
          yield* check(statuses.join() === "200,409", `Two answers got ${JSON.stringify(outcomes)}.`)
          answers++
        }
        yield* next(queue, "TurnEnded")
        yield* until(
          call(client, `/v1/sessions/${id}`, undefined, "DELETE"),
          ({ status }) => status === 200,
          "a session is deleted"
        )
        heard.delete(id)
      })
    /** Reads for a while and leaves in the middle, or asks for what it may not have. */
    const visit = Effect.gen(function* () {
      clients++
      const [id = "none"] = heard.keys()
      yield* call(client, "/v1/requests")
      yield* call(client, `/v1/sessions/${id}`)
      yield* call({ ...client, token: "wrong" }, "/v1/sessions")
      yield* call(client, "/v1/requests/unknown/answer", { answer: "y" })
      const path = Math.random() < 0.5 ? "/v1/events" : `/v1/sessions/${id}/events`
      const after = Math.random() < 0.5 ? last : undefined
      yield* Effect.timeoutOption(
        follow(client, path, after, () => {}, Math.random() * 100_000),
        Math.random() * 5_000
      )
    })
    const failed = yield* Deferred.make<never, Failed>()
    const paced = (work: () => Effect.Effect<void, Failed>) =>
      Effect.forever(
        Effect.gen(function* () {
          if (!isPaused && working < atOnce) {
            working++
            yield* Effect.forkDaemon(
              Effect.ensuring(
                Effect.catchAll(work(), (failure) => Deferred.fail(failed, failure)),
                Effect.sync(() => working--)
              )
            )
          }
          yield* Effect.sleep(pause.usual / pause.times)
        })
      )
    yield* Effect.forkScoped(paced(() => life(`h${sessions++}`)))
    yield* Effect.forkScoped(paced(() => visit))
    const figures: Array<number> = []
    const minute = Effect.gen(function* () {
      yield* Effect.sleep("1 minute")
      isPaused = true
      yield* until(
        Effect.sync(() => working),
        (count) => count === 0,
        "all sessions have ended"
      )
      yield* Effect.sleep("1 second")
      const printed = yield* Effect.fork(client.line)
      yield* Effect.yieldNow()
      client.child.kill("SIGUSR2")
      const { external, heapUsed, rss } = JSON.parse(yield* printed)
      isPaused = false
      figures.push(heapUsed)
      const megabytes = (bytes: number) => (bytes / 1_000_000).toFixed(2)
      say(
        `heap: minute ${figures.length}: ${megabytes(heapUsed)} MB, ${megabytes(external)} MB outside it, ` +
          `${Math.round(rss / 1_000_000)} MB RSS; ${sessions} sessions, ${answers} answers, ${clients} clients; ${load()}`
      )
    })
    yield* Effect.raceFirst(Effect.repeatN(minute, minutes - 1), Deferred.await(failed))
    const settled = figures.slice(Math.min(warm, figures.length - 2))
    const part = Math.max(1, Math.floor(settled.length / 4))
    const [before, after] = [quantile(settled.slice(0, part), 0.5), quantile(settled.slice(-part), 0.5)]
    const growth = after / before - 1
    say(
      `heap: ${minutes} minutes at ${pause.times} times the usual load: ${(growth * 100).toFixed(1)} % more ` +
        `in the last quarter than in the first one after ${warm} minutes; ${load()}`
    )
    yield* check(growth <= most, "The heap grows.")
  }).pipe(Effect.scoped)

// -----------------------------------------------------------------------------------------------------------------
// the program
// -----------------------------------------------------------------------------------------------------------------

const [, , part, word, ...rest] = process.argv
const wanted = (name: string) => part === undefined || part === name

const all = Effect.gen(function* () {
  if (part === "child") return yield* child(word ?? "")
  if (part === "siege") return yield* siege(word ?? "", rest[0] ?? "", rest[1] ?? "", rest[2] ?? "")
  if (wanted("races")) yield* races(Number(word ?? 1_000))
  if (wanted("kills")) yield* kills(Number(word ?? 20))
  if (wanted("load")) for (const store of [":memory:", undefined]) yield* loaded(Number(word ?? 1_000), store)
  if (wanted("attacks")) yield* attacks(Number(word ?? 40))
  if (wanted("heap")) yield* heap(Number(word ?? 30))
})

NodeRuntime.runMain(all)
