/** `assent/node`: what a program on Node needs to ask a person at its terminal. */
export * as NodeTerminal from "./terminal/NodeTerminal.js"
export * as Screen from "./terminal/Screen.js"
