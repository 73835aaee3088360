import * as PlatformError from "@effect/platform/Error"
import { assert, describe, it } from "@effect/vitest"
import * as FileFailure from "../../src/core/FileFailure.js"

const failed = (reason: PlatformError.SystemErrorReason, description?: string) =>
  FileFailure.reason(
    new PlatformError.SystemError({ module: "FileSystem", method: "open", pathOrDescriptor: "/a", reason, description })
  )

describe("the reason of a file's failure", () => {
  it("is what the system says, without its code, its call and the path", () => {
    assert.deepStrictEqual(
      [
        failed("NotFound", "ENOENT: no such file or directory, scandir '/a, b/it's'"),
        failed("BadResource", "ENOTDIR: not a directory, access '/a'"),
        failed("Unknown", "ENOSPC: no space left on device, write"),
        failed("PermissionDenied"),
        failed("NotFound"),
        FileFailure.reason(new PlatformError.BadArgument({ module: "FileSystem", method: "open" }))
      ],
      [
        "no such file or directory",
        "not a directory",
        "no space left on device",
        "permission denied",
        "not found",
        "it cannot be used"
      ]
    )
  })
})
