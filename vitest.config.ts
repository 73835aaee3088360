import { accessSync, constants, statfsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { resolve } from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type Reporter, type TestSpecification } from "vitest/node"

/**
 * What `npm run test:quick` leaves out: what needs a build, a database or a sandbox, long random runs, and suites over many
 * layers. Every room keeps tests there.
 */
const slow = [
  "test/cli/*.test.ts",
  "test/tui/process/Output.test.ts",
  "test/sandbox/{GitConfig,GitIndex,GitState,HostSandbox,Layout,Repository,RepositoryConfig,Watch,escapes,killed}.test.ts",
  "test/store/{LibsqlStore,SqlSessionStore,crash,races,repeatedRun}.test.ts",
  "test/web/*.test.ts",
  "test/{package,surface,weight}.test.ts",
  "test/**/*.property.test.ts",
  "test/audit/AuditTrail.test.ts",
  "test/bridge/{MediatorAgent,schedules}.test.ts",
  "test/builtin/{CommandEnvironment,Jobs,PrintedOutput,ShellRun,SyncFiles,Undo}.test.ts",
  "test/builtin/{WorkspaceFile,WorkspaceRoot,WorkspaceSearch,swappedLink}.test.ts",
  "test/{channel/{FileChannel,QueueChannel,WebhookChannel},tui/console/{ConsoleBatch,ConsoleChannel,ConsoleKeys}}.test.ts",
  "test/conversation/CompactionStrategy.test.ts",
  "test/core/{Redaction,UntrustedJson}.test.ts",
  "test/interaction/{PendingRequests,TypedAnswer}.test.ts",
  "test/journal/{RecordedScript,Replay,SessionFork,SessionSnapshot}.test.ts",
  "test/model/{ScriptedModel,aimock,faults,fuzz,providers,requests,vendors}.test.ts",
  "test/people/schedules.test.ts",
  "test/permission/{GitGuard,Growth,GuardGrowth,LinkedPath,PermissionGate,PolicyTrial,Sanitizer,ShellLines}.test.ts",
  "test/host/Telemetry.test.ts",
  "test/runtime/Files.test.ts",
  "test/scenario/{crash,plan,questions,takenBack}.test.ts",
  "test/session/Session.test.ts",
  "test/shell/{CommandLine,HarmlessRuns}.test.ts",
  "test/subagent/Authority.test.ts",
  "test/tui/terminal/{MarkdownStream,ScreenKeys}.test.ts",
  "test/testing/{ChannelSuite,SessionStoreSuite}.test.ts",
  "test/turn/{Compaction,TurnFiber}.test.ts"
]
/** They load modules a second time or others in their place, and the tests behind them in the same process would have those. */
const alone = ["test/core/{Digest,Spans}.test.ts", "test/host/telemetryMissing.test.ts"]
// The examples run from the packed package, in a project of their own: `test/package.test.ts`. What the bench compares with
// brings tests of its own, and so does what PostgreSQL's tests need.
const foreign = ["test/examples/**", "**/node_modules/**"]
/** They need a server, which `npm run test:postgres` installs. Where there is none they are skipped, and a line says so. */
const postgres = "test/postgres/*.test.ts"
/** They need clients and servers of others, which `npm run judges` installs. Where there are none they are skipped, and a line says so. */
const judges = ["test/judges/acp/*.test.ts", "test/judges/mcp/*.test.ts", "test/judges/openapi/*.test.ts"]
const agui = "test/judges/agui/*.test.ts"
const others = [postgres, agui, ...judges]
const otherSetups = ["postgres", "judges", "judges/agui"].map((name) => `test/${name}/setup.ts`)

/**
 * Whether everything is asked for. Then these are one project: vitest waits for the last file of a project, and starts its
 * processes anew for the next one. Else each has its own, so that no server is started for the tests of others.
 */
const [, ...words] = process.argv.slice(2)
const isFilter = (word: string, index: number): boolean =>
  word.startsWith("--project") || (!word.startsWith("-") && (word.includes("/") || !words[index - 1]?.startsWith("-")))
const isWhole = !words.some(isFilter)

const memory = "/dev/shm"
/** Whether temporary files have room in memory. A disk takes milliseconds to make a directory and to remove one. */
const isRoomy = (): boolean => {
  try {
    accessSync(memory, constants.W_OK)
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize > 2_000_000_000
  } catch {
    return false
  }
}
// The processes of the tests get it from here.
if (process.env["TMPDIR"] === undefined && isRoomy()) process.env["TMPDIR"] = memory

/**
 * What takes longest begins first, so that no core waits for the last of it. Without former durations vitest begins with the
 * largest files, and a small one may take half a minute. Files that start clusters stand apart, because a node that gets no
 * time loses its sessions.
 */
const longest = `
  postgres/clusterApi package sandbox/escapes
  postgres/cluster web/InboxView mcp/hostile tui/console/ConsoleChannel
  postgres/failover cli/jobs postgres/keys builtin/ShellRun sandbox/HostSandbox tui/terminal/MarkdownStream
  postgres/audit scenario/decidedPlace cli/keys cli/hostile postgres/PostgresStore
  postgres/fingerprint postgres/fences postgres/races web/views shell/HarmlessRuns
  postgres/repeatedRun store/repeatedRun store/SqlSessionStore postgres/crash postgres/kills postgres/failures
  cli/timeLimit cli/idle cli/start sandbox/Watch
`
  .trim()
  .split(/\s+/)
  .map((name) => resolve(`test/${name}.test.ts`))

class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    return [
      ...longest.flatMap((file) => sorted.filter(({ moduleId }) => moduleId === file)),
      ...sorted.filter(({ moduleId }) => !longest.includes(moduleId))
    ]
  }
}

const isRepeated = process.env["ASSENT_RETRY"] !== undefined

/** Names each test that passed only when it ran again. */
const naming: Reporter = {
  onTestCaseResult: (test) => {
    if (test.diagnostic()?.flaky === true)
      process.stdout.write(`passed at its second try: ${test.module.moduleId} > ${test.fullName}\n`)
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
      // Tests of one file that wait for programs; each of them starts some.
      maxConcurrency: 2,
      // Random runs are many, and a machine may have other work.
      testTimeout: 120_000,
      hookTimeout: 120_000,
      // On a machine that others use, a program may get no time.
      retry: isRepeated ? 1 : 0,
      reporters: ["default", ...(isRepeated ? [naming] : [])],
      projects: [
        {
          extends: true,
          test: {
            name: "tests",
            include: ["test/**/*.test.ts"],
            globalSetup: isQuick ? [] : ["test/sandbox/setup.ts", "test/web/setup.ts", ...(isWhole ? otherSetups : [])],
            exclude: [...foreign, ...alone, ...(isQuick ? slow : []), ...(isQuick || !isWhole ? others : [])]
          }
        },
        {
          extends: true,
          test: { name: "alone", include: alone, poolOptions: { forks: { isolate: true } } }
        },
        ...(isQuick || isWhole
          ? []
          : [
              {
                extends: true as const,
                test: { name: "postgres", include: [postgres], exclude: foreign, globalSetup: "test/postgres/setup.ts" }
              },
              {
                extends: true as const,
                test: { name: "judges", include: judges, exclude: foreign, globalSetup: "test/judges/setup.ts" }
              },
              {
                extends: true as const,
                test: { name: "agui", include: [agui], exclude: foreign, globalSetup: "test/judges/agui/setup.ts" }
              }
            ])
      ]
    }
  }
})
