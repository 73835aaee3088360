/**
 * `assent/testing`: what teams use in their own tests.
 *
 * @since 0.1.0
 */
export * as QueueChannel from "../channel/QueueChannel.js"
export * as ScriptedModel from "../model/ScriptedModel.js"
export * as ChannelSuite from "./ChannelSuite.js"
export * as CrashTest from "./CrashTest.js"
export * as ModelSuite from "./ModelSuite.js"
export * as SessionStoreSuite from "./SessionStoreSuite.js"
export * as TestAgent from "./TestAgent.js"
export * as TestInteractor from "./TestInteractor.js"
