import * as Mortal from "../kit/Mortal.js"
import { crashSuite } from "../suite/crashSuite.js"

crashSuite("memory", { world: Mortal.world, every: 1, runs: 30 })
