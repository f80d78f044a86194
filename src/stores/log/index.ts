/**
 * @module log: what a Run printed. Start reading at `decide-append.ts`, then `log-store.ts`.
 * In: bytes of one Run, counted by their sender. Out: the same bytes once and in order, now or while they come, within limits that leave a mark.
 * `log-handler.ts` serves them over HTTP, `LogClient` sends them, `createMasker` takes the secrets out before (invariant 9).
 * Not done here: who may read (`authorize` is given), and when a Run's log goes with its Run (`remove` is called).
 */
export { createMasker, type Masker } from './create-masker.ts'
export { LogClient, type LogClientOptions } from './log-client.ts'
export { createLogHandler, type LogAccess, type LogAccessRequest, type LogHandler, type LogHandlerOptions } from './log-handler.ts'
export {
  type AppendResult,
  type LogLimits,
  type LogStats,
  type LogStore,
  openLogStore,
  type ReadOptions,
} from './log-store.ts'
export { LogNameError, type RunKey } from './run-key.ts'
