/**
 * @module state: what engines remember between Runs, who may change it, and that nothing of it is lost. Start reading at `decide-write.ts`
 * and `decide-lock.ts`, then `open-state-store.ts`.
 * In: contents with a Run's epoch, or a person's lock id. Out: "on disk" (invariant 5), or a refusal whose content is kept aside (invariant 3).
 * Around the store: `state-handler.ts` serves it over HTTP, to workers and as a Terraform backend; `StateClient`, `streamStateFile` and
 * `salvageState` are the worker's side.
 * Not done here: who a user is and which Stack a name means (`authorize` is given), and whether a Run is gone (`isHolderGone` is given, invariant 4).
 */
export type { UnlockClaim } from './decide-lock.ts'
export { describeHolder, isSameHolder, type LockHolder, type LockInfo, type PersonHolder, type RunHolder } from './lock-holder.ts'
export { type IsHolderGone, openStateStore, type StateStore, type StateStoreOptions } from './open-state-store.ts'
export { type SalvageOptions, type SalvageResult, salvageState } from './salvage.ts'
export { type CallOptions, type ClientVersion, StateClient, type StateClientOptions } from './state-client.ts'
export { LockedError, StaleEpochError, StateClientError } from './state-client-error.ts'
export {
  defaultStateLimits,
  type HeldLock,
  type LockResult,
  type OrphanInfo,
  type StateLimits,
  type StateStats,
  type StoredPlan,
  type StoredVersion,
  type UnlockResult,
  type VersionInfo,
  type VersionKind,
  type WriteResult,
} from './state-database.ts'
export {
  createStateHandler,
  type StateAccess,
  type StateAccessRequest,
  type StateHandler,
  type StateHandlerOptions,
} from './state-handler.ts'
export { StateStoreError, type StateStoreErrorCode } from './state-store-error.ts'
export { type StateFileStream, type StreamStateFileOptions, streamStateFile } from './stream-state-file.ts'
