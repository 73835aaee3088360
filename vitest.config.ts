import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

// By default one core is left to an editor.
const maxForks = availableParallelism()

/** What `npm run test:quick` leaves out: what needs a build, a database or a sandbox, and long random runs. */
const slow = [
  "test/cli/**/*.test.ts",
  "test/sandbox/**/*.test.ts",
  "test/store/**/*.test.ts",
  "test/package.test.ts",
  "test/surface.test.ts",
  "test/**/*.property.test.ts",
  "test/audit/AuditTrail.test.ts",
  "test/bridge/{MediatorAgent,schedules}.test.ts",
  "test/builtin/ShellRun.test.ts",
  "test/channel/FileChannel.test.ts",
  "test/interaction/TypedAnswer.test.ts",
  "test/model/{aimock,faults,fuzz,providers,vendors}.test.ts",
  "test/permission/{Growth,ShellLines}.test.ts",
  "test/scenario/crash.test.ts",
  "test/session/Session.test.ts",
  "test/shell/CommandLine.test.ts",
  "test/turn/TurnFiber.test.ts"
]
/** They load modules a second time, which would be there for the tests behind them in the same process. */
const alone = ["test/core/{Digest,Spans}.test.ts"]
// The examples run from the packed package, in a project of their own: `test/package.test.ts`. What the bench compares with
// brings tests of its own.
const foreign = ["test/examples/**", "test/bench/node_modules/**"]
/** They need a server, which `npm run test:postgres` installs. Where there is none they are skipped, and a line says so. */
const postgres = "test/postgres/*.test.ts"

export default defineConfig({
  test: {
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks } },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "quick",
          include: ["test/**/*.test.ts"],
          exclude: [...foreign, "test/postgres/**", ...slow, ...alone]
        }
      },
      { extends: true, test: { name: "quick-alone", include: alone } },
      // Random runs are many, and a machine may have other work.
      { extends: true, test: { name: "slow", include: slow, exclude: foreign, testTimeout: 120_000 } },
      {
        extends: true,
        test: {
          name: "postgres",
          include: [postgres],
          exclude: foreign,
          globalSetup: "test/postgres/setup.ts",
          testTimeout: 120_000
        }
      }
    ]
  }
})
