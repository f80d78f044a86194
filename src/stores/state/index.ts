/**
 * @module stores/state: stores the state versions of stacks, and decides who may lock and write them. Start reading at `decide-write.ts` and
 * `decide-lock.ts`, then `open-state-store.ts` (the store), `state-database.ts` (its rules on SQLite, whose tables are files) and `state-handler.ts` (HTTP).
 * Input: content with a Run's epoch, or with a user's lock id. Output: an acknowledgement when it is on disk (invariant 5), or a rejection
 * whose content is stored as an orphaned version (invariant 3).
 * With the versions it keeps plans, and what the last Apply used, for the destruction; `state-facts.ts` has what the controllers ask for.
 * `run-inputs.ts` has what a worker gets for its Run besides states: Secrets, ConfigMaps and outputs, from where `inputs` finds them.
 * `state-handler.ts` serves workers and is a Terraform HTTP backend; `StateClient`, `streamStateFile` and `recoverState` are the worker's side.
 * Out of scope: authentication and authorization (`authorize` is passed in), and whether a Run has abandoned its lock (`isLockAbandoned` is
 * passed in, invariant 4).
 */

export { epochAfterRestore, type Fence, maxEpoch, type UnlockClaim } from './decide-lock.ts'
export { decideStateError, formatStateError, type StateError } from './decide-state-error.ts'
export type { OrphanReason } from './decide-write.ts'
export { knownStateOf, newestNumber } from './known-state.ts'
export { describeHolder, isSameHolder, type LockHolder, type LockInfo, type RunHolder, type UserHolder } from './lock-holder.ts'
export { type IsLockAbandoned, openStateStore, type StateStore, type StateStoreOptions, type TokenRotation } from './open-state-store.ts'
export { keptStatePath, type RecoverStateOptions, type RecoverStateResult, recoverState } from './recover-state.ts'
export {
  type AuthorizedRun,
  type InputObject,
  type RunInputObjects,
  RunInputsError,
  type RunInputsSource,
  type StackOutputsData,
} from './run-inputs.ts'
export { type CallOptions, type ClientVersion, StateClient, type StateClientOptions } from './state-client.ts'
export { LockedError, StaleEpochError, StateClientError } from './state-client-error.ts'
export type { StateFacts } from './state-facts.ts'
export {
  createStateHandler,
  type StateAccess,
  type StateAccessRequest,
  type StateHandler,
  type StateHandlerOptions,
} from './state-handler.ts'
export { StateStoreError, type StateStoreErrorCode } from './state-store-error.ts'
export {
  defaultStateLimits,
  type HeldLock,
  type LockResult,
  type OrphanInfo,
  type PulumiFacts,
  type StateLimits,
  type StateStats,
  type StateWriteResult,
  type StoredPlan,
  type StoredVersion,
  type UnlockResult,
  type VersionInfo,
  type VersionKind,
} from './state-types.ts'
export { storeErrorMessage } from './store-error-message.ts'
export { IncompleteStateError, type StateFileStream, type StreamStateFileOptions, streamStateFile } from './stream-state-file.ts'
export {
  addressOf,
  lineageOf,
  masked,
  replacementConflict,
  type StateSummary,
  summarizeState,
  urnAddressOf,
  withNewerSerial,
} from './summarize-state.ts'
