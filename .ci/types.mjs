/**
 * Checks types, and what Effect's language service finds, in one program: `node .ci/types.mjs`. The program that comes
 * with that service reads everything anew for every fifty files. The page of the console is a second program: it has a
 * browser's types.
 */
import effect from "@effect/language-service"
import ts from "typescript"

const shown = {
  getCurrentDirectory: ts.sys.getCurrentDirectory,
  getCanonicalFileName: (file) => file,
  getNewLine: () => "\n"
}
const report = (diagnostics) => {
  const findings = diagnostics.filter(
    ({ category }) => category === ts.DiagnosticCategory.Error || category === ts.DiagnosticCategory.Warning
  )
  if (findings.length === 0) return
  process.stderr.write(ts.formatDiagnosticsWithColorAndContext(findings, shown))
  process.exitCode = 1
}

const config = ts.getParsedCommandLineOfConfigFile(
  "tsconfig.json",
  {},
  {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: (diagnostic) => report([diagnostic])
  }
)
if (config === undefined) process.exit(1)
const plugin = config.options.plugins.find(({ name }) => name === "@effect/language-service")

/** Nothing changes while it is checked. */
const host = {
  ...ts.sys,
  useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  getCompilationSettings: () => config.options,
  getScriptFileNames: () => config.fileNames,
  getScriptVersion: () => "1",
  getScriptSnapshot: (file) => {
    const text = ts.sys.readFile(file)
    return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
  },
  getDefaultLibFileName: ts.getDefaultLibFilePath
}
const service = effect({ typescript: ts }).create({
  languageService: ts.createLanguageService(host),
  languageServiceHost: host,
  serverHost: ts.sys,
  project: { getProjectName: () => "tsconfig.json", projectService: { logger: { info: () => {} } }, log: () => {} },
  config: plugin
})

const program = service.getProgram()
report([...config.errors, ...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()])
for (const file of config.fileNames) {
  report([...program.getSyntacticDiagnostics(program.getSourceFile(file)), ...service.getSemanticDiagnostics(file)])
}

const page = ts.getParsedCommandLineOfConfigFile(
  "src/web/tsconfig.json",
  {},
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (found) => report([found]) }
)
if (page === undefined) process.exit(1)
report([...page.errors, ...ts.getPreEmitDiagnostics(ts.createProgram(page.fileNames, page.options))])
