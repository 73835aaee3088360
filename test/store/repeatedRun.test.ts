import * as Effect from "effect/Effect"
import { join } from "node:path"
import { repeatedRunSuite } from "../suite/repeatedRunSuite.js"

repeatedRunSuite("a SQLite file", (directory) => Effect.succeed(join(directory, "assent.db")))
