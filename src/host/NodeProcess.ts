/**
 * This process, as leases of sessions name it: for `LibsqlStore`, `PostgresStore` and other stores of a Node program.
 *
 * @since 0.1.0
 */
import { readFileSync } from "node:fs"
import { hostname } from "node:os"
import type { Process } from "../journal/SessionLease.js"

/**
 * Its number and host, and whether other processes of this host are alive. On Linux a process that has the number of an
 * ended one is told from that.
 *
 * @since 0.1.0
 * @category constants
 */
export const self: Process = {
  pid: process.pid,
  host: hostname(),
  isAlive: (pid) => {
    try {
      return process.kill(pid, 0)
    } catch (error) {
      // The process exists and belongs to another user.
      return error instanceof Error && "code" in error && error.code === "EPERM"
    }
  },
  markOf: (pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
      // The name before may hold anything; the 20th field after it is when the process began, in ticks since the start.
      const began = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]
      return began === undefined
        ? undefined
        : `${began}.${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`
    } catch {
      return undefined
    }
  }
}
