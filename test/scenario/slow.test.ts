import * as Mortal from "../kit/Mortal.js"
import * as Runs from "../kit/Runs.js"
import { slowSuite } from "../suite/slowSuite.js"

slowSuite("memory", { world: Mortal.world, every: Runs.isWhole ? 1 : 3, runs: Runs.of(160) })
