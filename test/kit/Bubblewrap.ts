import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"

/** Whether this machine can make a sandbox; tests that need one are skipped otherwise. */
export const isPossible = (() => {
  if (!existsSync("/usr/bin/bwrap")) return false
  try {
    execFileSync("/usr/bin/bwrap", [
      "--unshare-all",
      "--ro-bind",
      "/",
      "/",
      "--proc",
      "/proc",
      "--",
      "/bin/sh",
      "-c",
      "exit 0"
    ])
    return true
  } catch {
    return false
  }
})()
