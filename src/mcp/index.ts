/**
 * `assent/mcp`: tool servers of the Model Context Protocol.
 *
 * @since 0.1.0
 */
export * as McpServer from "./McpServer.js"
export * as ServerSettings from "../tool/ServerSettings.js"
