/**
 * @module kubernetes/apply: field ownership of server-side apply. Start reading at `apply-server-side.ts`, then `field-set.ts`.
 * In: the stored object, the configuration or object of a client, its manager. Out: the object with its managedFields, and conflicts.
 * Out of scope: defaults, validation, conversion between versions (all versions of a kind are assumed to have the same
 * fields), metadata that the server sets.
 */
export { type ApplyInput, type ApplyResult, applyServerSide } from './apply-server-side.ts'
export { conflictError, type FieldConflict } from './conflict-error.ts'
export { isManagedFields, touchOwnership } from './managed-fields.ts'
export { countOwned, type OwnedCount } from './owned-items.ts'
export { type AnyObject, type TrackUpdateInput, trackUpdate } from './track-update.ts'
