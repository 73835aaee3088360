import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"
import { crashSuite } from "../suite/crashSuite.js"

crashSuite("memory", { world: Mortal.world, every: Runs.isWhole ? 1 : 3, runs: Runs.of(64) })
