/**
 * `assent/node`: asks a person at the terminal of a Node program, and names its process for stores.
 *
 * @since 0.1.0
 */
export * as NodeProcess from "../host/NodeProcess.js"
export * as NodeWeb from "../host/NodeWeb.js"
export * as NodeTerminal from "../tui/process/NodeTerminal.js"
export * as Screen from "../tui/process/Screen.js"
