/** `assent/testing`: what teams use in their own tests. */
export * as ScriptedModel from "../model/ScriptedModel.js"
export * as QueueChannel from "../channel/QueueChannel.js"
