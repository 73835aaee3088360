/** What a system says where a file or a directory cannot be used, without its codes, calls and paths. */
import type { PlatformError } from "@effect/platform/Error"

/** A clause for behind a colon, such as `no such file or directory`. */
export const reason = (error: PlatformError): string => {
  const { description = "" } = error
  const said = description.replace(/^[A-Z]+: /, "").replace(/, \w+(?: ['"].*)?$/s, "")
  if (said !== "") return said.replace(/\.$/, "")
  if (error._tag === "BadArgument") return "it cannot be used"
  return error.reason.replace(/\B[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).toLowerCase()
}
