/**
 * `assent/node`: asks a person at the terminal of a Node program.
 *
 * @since 0.1.0
 */
export * as NodeTerminal from "./terminal/NodeTerminal.js"
export * as Screen from "./terminal/Screen.js"
