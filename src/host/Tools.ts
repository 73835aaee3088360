/** The tools of the command line. */
import * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Checkpoints from "../builtin/Checkpoints.js"
import * as Clarification from "../builtin/Clarification.js"
import * as Delegate from "../builtin/Delegate.js"
import * as FetchUrl from "../builtin/FetchUrl.js"
import * as Planning from "../builtin/Planning.js"
import * as SubagentControl from "../builtin/SubagentControl.js"
import * as Workspace from "../builtin/Workspace.js"
import * as AgentRuntime from "../runtime/AgentRuntime.js"
import * as ToolRegistry from "../tool/ToolRegistry.js"
import * as NodeFiles from "./NodeFiles.js"
import * as NodeWeb from "./NodeWeb.js"
import * as HttpProxy from "./HttpProxy.js"
import type { Settings } from "./Settings.js"

/** Those that touch no file and run no command. */
const withoutWorkspace = Toolkit.merge(
  FetchUrl.toolkit,
  Clarification.toolkit,
  Delegate.toolkit,
  Planning.toolkit,
  SubagentControl.toolkit
)

export const toolkit = Toolkit.merge(Workspace.toolkit, withoutWorkspace)

/** All of them, or those for sessions without a workspace. The handlers are the same. */
export const toolkitFor = (hasWorkspace: boolean): typeof toolkit =>
  hasWorkspace ? toolkit : (withoutWorkspace as unknown as typeof toolkit)

/**
 * Their handlers. What files were before is kept in `checkpoints`, where that is given. `nobody` says why nobody can be asked
 * for a password.
 */
export const layer = (
  workspace: Workspace.Options,
  proxy?: HttpProxy.HttpProxy,
  checkpoints?: Checkpoints.Service,
  nobody?: string
) =>
  Layer.mergeAll(
    Layer.provide(
      Workspace.layer(workspace),
      Layer.mergeAll(
        NodeFiles.layer,
        NodeFiles.askpass(nobody),
        checkpoints === undefined ? Layer.empty : Layer.succeed(Checkpoints.Checkpoints, checkpoints)
      )
    ),
    Layer.provide(FetchUrl.layer, NodeWeb.layer(proxy === undefined ? {} : { through: through(proxy) })),
    Clarification.layer,
    Delegate.layer,
    Planning.layer,
    SubagentControl.layer
  )

const through =
  (proxy: HttpProxy.HttpProxy) =>
  (url: URL): typeof fetch | undefined =>
    proxy.routeOf(url) === undefined ? undefined : HttpProxy.fetchOf(proxy)

/** Names and groups of the tools, without their handlers. The servers of the settings are not started. */
export const registry = ({ servers, workspace }: Pick<Settings, "servers" | "workspace">) =>
  Effect.map(Effect.provide(AgentRuntime.registry(toolkit), layer({ root: workspace })), (tools) =>
    ToolRegistry.expecting(tools, Object.keys(servers))
  )
