/**
 * @module stores/log: stores the log of each Run. Start reading at `decide-append.ts`, then `log-store.ts`.
 * Input: bytes of one Run, with offsets counted by their sender. Output: the same bytes once and in order, at any time or while they arrive,
 * within limits that leave a mark (invariant 10).
 * `log-times.ts` records when they arrived, `log-handler.ts` serves them over HTTP, `LogClient` sends them, `createMasker` masks secrets before (invariant 9).
 * Out of scope: authorization (`authorize` is passed in), and when a log is deleted with its Run (`remove` is called).
 */
export { createMasker, type Masker, SecretsTooLargeError } from './create-masker.ts'
export { LogClient, type LogClientOptions } from './log-client.ts'
export {
  createLogHandler,
  type LogAccess,
  type LogAccessRequest,
  type LogContext,
  type LogHandler,
  type LogHandlerOptions,
} from './log-handler.ts'
export {
  type AppendResult,
  type LogLimits,
  type LogStats,
  type LogStore,
  openLogStore,
  type ReadOptions,
} from './log-store.ts'
export { LogNameError, type RunKey } from './run-key.ts'
