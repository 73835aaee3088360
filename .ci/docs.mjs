/**
 * Writes the reference of the public modules into `dist/docs`, from their doc comments: `node .ci/docs.mjs`. A link that
 * leads nowhere is an error, as is everything else that TypeDoc warns of.
 *
 * The modules are those that `package.json` exports, each once, under the path it is imported by.
 */
import { readFileSync } from "node:fs"
import { Application, Converter, ReflectionKind } from "typedoc"

const manifest = JSON.parse(readFileSync("package.json", "utf8"))
/** From a source to its path. What was moved has its former path too, further down. */
const pathOf = new Map()
for (const [path, target] of Object.entries(manifest.exports)) {
  if (target.types === undefined) continue
  const source = target.types.replace(/^\.\/dist\/lib\/(.*)\.d\.ts$/, "src/$1.ts")
  if (!pathOf.has(source)) pathOf.set(source, path.replace(".", manifest.name))
}

const app = await Application.bootstrap({
  entryPoints: [...pathOf.keys()],
  tsconfig: "src/tsconfig.build.json",
  out: "dist/docs",
  name: manifest.name,
  includeVersion: true,
  // A test says that there are no such types, except within a file.
  validation: { notExported: false, invalidLink: true, invalidPath: true, unusedMergeModuleWith: true },
  treatWarningsAsErrors: true,
  treatValidationWarningsAsErrors: true,
  skipErrorChecking: true,
  excludeInternal: true,
  excludePrivate: true,
  // Hundreds of members that classes of errors have from Effect's.
  excludeExternals: true,
  disableSources: true,
  categorizeByGroup: false,
  categoryOrder: ["constructors", "layers", "services", "models", "schemas", "errors", "operations", "*"],
  sort: ["source-order"],
  highlightLanguages: ["bash", "json", "jsonl", "ts", "yaml"],
  githubPages: false,
  logLevel: "Warn"
})

app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
  const modules = project.getReflectionsByKind(ReflectionKind.Module)
  if (modules.length !== pathOf.size) throw new Error(`${modules.length} modules instead of ${pathOf.size}`)
  for (const module of modules) {
    const [source] = [`src/${module.name}.ts`, `src/${module.name}/index.ts`].filter((file) => pathOf.has(file))
    if (source === undefined) throw new Error(`${module.name} is no public module`)
    module.name = pathOf.get(source)
  }
  // A schema and its type have one name and one comment.
  for (const { children = [] } of project.getReflectionsByKind(ReflectionKind.SomeModule)) {
    for (const child of children) {
      const twin = children.find(({ comment, name }) => name === child.name && comment !== undefined)
      if (child.comment === undefined && twin !== undefined) child.comment = twin.comment.clone()
    }
  }
})

const project = await app.convert()
if (project === undefined) process.exit(1)
app.validate(project)
await app.generateOutputs(project)
process.exitCode = app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0
