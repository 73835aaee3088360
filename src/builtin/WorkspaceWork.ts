/** What the tools of a workspace do, loaded with the first workspace: see `Workspace.layer`. */
export { CommandExecutor } from "@effect/platform/CommandExecutor"
export * as HostSandbox from "../sandbox/HostSandbox.js"
export * as Askpass from "./Askpass.js"
export * as ChangePreview from "./ChangePreview.js"
export * as ShellProcess from "./ShellProcess.js"
export * as ShellRun from "./ShellRun.js"
export * as WorkspaceFile from "./WorkspaceFile.js"
export * as WorkspaceSearch from "./WorkspaceSearch.js"
