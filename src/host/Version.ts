/** The version in `package.json`; the bundler puts its text in. */
import manifest from "../../package.json" with { type: "json" }

export const version: string = manifest.version
