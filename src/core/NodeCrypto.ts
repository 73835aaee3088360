/**
 * Node's own cryptography. It is asked for while the program runs and not imported, because a browser has no such module
 * and its bundler would stop there. Elsewhere it is missing.
 */
export const nodeCrypto = globalThis.process?.getBuiltinModule?.("node:crypto")
