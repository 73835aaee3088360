/** `assent/node`: asks a person at the terminal of a Node program. */
export * as NodeTerminal from "./terminal/NodeTerminal.js"
export * as Screen from "./terminal/Screen.js"
