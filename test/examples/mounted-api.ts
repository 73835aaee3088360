/** The HTTP API in a server of one's own, which knows its people by itself: their answers count as theirs. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Api } from "assent/http"
import { AssentApi } from "assent/serve"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { createServer } from "node:http"

const people = new Map([["the-token-of-ada", { name: "ada", roles: ["ops"] }]])

const signIn = Layer.succeed(Api.Authentication, {
  token: (token) =>
    Effect.mapError(
      Effect.fromNullable(people.get(Redacted.value(token))),
      () => new Api.Unauthorized({ message: "Sign in first." })
    )
})

/** The API at a port, until the scope closes. */
export const served = (options: AssentApi.Options, port: number) =>
  HttpApiBuilder.serve().pipe(
    Layer.provide(AssentApi.layer(options)),
    Layer.provide(signIn),
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" }))
  )
