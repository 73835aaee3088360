/**
 * Node's own cryptography. It is asked for while the program runs and not imported, because a browser has no such module
 * and its bundler would stop there. Elsewhere it is missing. Node loads it when it is first asked for.
 */
export const nodeCrypto = () => (asked ??= { crypto: ask() }).crypto

const ask = () => globalThis.process?.getBuiltinModule?.("node:crypto")

let asked: { readonly crypto: ReturnType<typeof ask> } | undefined
