/** What a journal is for, in small; `scenario/crash` has every entry. */
import * as Mortal from "../kit/Mortal.js"
import { crashSuite } from "../suite/crashSuite.js"

crashSuite("memory", { world: Mortal.world, every: 12, runs: 4 })
