import { availableParallelism } from "node:os"
import { resolve } from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/**
 * What `npm run test:quick` leaves out: what needs a build, a database or a sandbox, long random runs, and suites over many
 * layers. Every room keeps tests there.
 */
const slow = [
  "test/cli/*.test.ts",
  "test/cli/terminal/Output.test.ts",
  "test/sandbox/{HostSandbox,Layout,Repository,Watch,escapes,killed}.test.ts",
  "test/store/{KeyValueSessionStore,LibsqlStore,SqlSessionStore,crash,races,repeatedRun}.test.ts",
  "test/{package,surface,weight}.test.ts",
  "test/**/*.property.test.ts",
  "test/audit/AuditTrail.test.ts",
  "test/bridge/{MediatorAgent,schedules}.test.ts",
  "test/builtin/{CommandEnvironment,DirectFiles,Jobs,PrintedOutput,ShellRun,Undo}.test.ts",
  "test/builtin/{WorkspaceFile,WorkspaceRoot,WorkspaceSearch,swappedLink}.test.ts",
  "test/channel/{ConsoleBatch,ConsoleChannel,ConsoleKeys,FileChannel,QueueChannel,WebhookChannel}.test.ts",
  "test/conversation/CompactionStrategy.test.ts",
  "test/core/{ForeignJson,Redaction}.test.ts",
  "test/interaction/{PendingRequests,TypedAnswer}.test.ts",
  "test/journal/{RecordedScript,Replay,SessionFork,SessionSnapshot}.test.ts",
  "test/model/{ScriptedModel,aimock,faults,fuzz,providers,requests,vendors}.test.ts",
  "test/people/schedules.test.ts",
  "test/permission/{GitGuard,Growth,GuardGrowth,LinkedPath,PermissionGate,PolicyTrial,Sanitizer,ShellLines}.test.ts",
  "test/runtime/{Files,Telemetry}.test.ts",
  "test/scenario/{crash,plan,questions,takenBack}.test.ts",
  "test/session/Session.test.ts",
  "test/shell/{CommandLine,HarmlessRuns}.test.ts",
  "test/subagent/Authority.test.ts",
  "test/terminal/{MarkdownStream,ScreenKeys}.test.ts",
  "test/testing/{ChannelSuite,SessionStoreSuite}.test.ts",
  "test/turn/{Compaction,TurnFiber}.test.ts"
]
/** They load modules a second time or others in their place, and the tests behind them in the same process would have those. */
const alone = ["test/core/{Digest,Spans}.test.ts", "test/runtime/telemetryMissing.test.ts"]
// The examples run from the packed package, in a project of their own: `test/package.test.ts`. What the bench compares with
// brings tests of its own, and so does what PostgreSQL's tests need.
const foreign = ["test/examples/**", "**/node_modules/**"]
/** They need a server, which `npm run test:postgres` installs. Where there is none they are skipped, and a line says so. */
const postgres = "test/postgres/*.test.ts"

/** What takes longest, in order: it begins first, so that no core waits for the last of it. */
const longest = [
  "package",
  "cli/keys",
  "sandbox/escapes",
  "cli/hostile",
  "channel/FileChannel",
  "cli/start",
  "sandbox/Watch",
  "cli/jobs",
  "builtin/ShellRun",
  "store/KeyValueSessionStore"
].map((name) => resolve(`test/${name}.test.ts`))

class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    return [
      ...longest.flatMap((file) => sorted.filter(({ moduleId }) => moduleId === file)),
      ...sorted.filter(({ moduleId }) => !longest.includes(moduleId))
    ]
  }
}

/** `quick` leaves out {@link slow}; `shuffled` takes the files in random order, to see that none depends on another. */
export default defineConfig(({ mode }) => {
  const isQuick = mode === "quick"
  // More processes than cores: half of the time they wait for programs that they started. The quick ones start few, and
  // each process more would load the modules once more.
  const forks = availableParallelism() + (isQuick ? 0 : 1)
  return {
    test: {
      pool: "forks",
      // Files of a process share its modules: to load them again for each would take longer than the tests of most. There
      // are always as many processes: tinypool may end one twice that it has too many of, and vitest fails by that.
      poolOptions: { forks: { isolate: false, minForks: forks, maxForks: forks } },
      sequence: mode === "shuffled" ? { shuffle: { files: true } } : { sequencer: LongestFirst },
      setupFiles: "test/kit/setup.ts",
      // Random runs are many, and a machine may have other work.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      projects: [
        {
          extends: true,
          test: {
            name: "tests",
            include: ["test/**/*.test.ts"],
            globalSetup: isQuick ? [] : "test/sandbox/setup.ts",
            exclude: [...foreign, postgres, ...alone, ...(isQuick ? slow : [])]
          }
        },
        {
          extends: true,
          test: { name: "alone", include: alone, poolOptions: { forks: { isolate: true } } }
        },
        ...(isQuick
          ? []
          : [
              {
                extends: true as const,
                test: { name: "postgres", include: [postgres], exclude: foreign, globalSetup: "test/postgres/setup.ts" }
              }
            ])
      ]
    }
  }
})
