/** A file system in which somebody changes the workspace right before one of its calls. */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Origin from "../../src/core/Origin.js"
import type { ResolvedPaths } from "../../src/core/ResolvedPath.js"

export class Attacker {
  calls = 0
  armed = false
  /** Where the paths of the call lead that ran last, as its handler has them. */
  decided: ResolvedPaths | undefined

  constructor(
    /** The number of the call before which it strikes. */
    readonly at: number,
    readonly deed: () => void
  ) {}

  /** It strikes within this effect. */
  readonly during = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      this.armed = true
      return Effect.ensuring(
        effect,
        Effect.sync(() => void (this.armed = false))
      )
    })

  /** It had its turn while it was armed; otherwise each moment was tried. */
  get struck(): boolean {
    return this.calls > this.at
  }

  readonly layer: Layer.Layer<FileSystem.FileSystem, never, FileSystem.FileSystem> = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (real) => {
      const strike = () => {
        if (this.armed && this.calls++ === this.at) this.deed()
      }
      return new Proxy(real, {
        get: (target, name, receiver) => {
          const member: unknown = Reflect.get(target, name, receiver)
          if (typeof member !== "function") return member
          return (...args: ReadonlyArray<unknown>) =>
            Effect.withFiberRuntime((fiber) => {
              this.decided = Origin.of(fiber).paths ?? this.decided
              strike()
              return Reflect.apply(member, target, args)
            })
        }
      })
    })
  )
}
