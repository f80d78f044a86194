/**
 * @module gateway/creation: objects whose name is unique in all partitions. Start reading at `create-owned.ts`.
 * In: a new object and its partition. Out: its role announced to all partitions, a claim of its name at home, then the object; for a CustomResourceDefinition the time until each partition has it.
 */

export { Announcements } from './announce-role.ts'
export { awaitDefinition } from './await-definition.ts'
export { claimObjectName } from './claim-object-name.ts'
export { createdTooLate, mustNotCreate } from './create-claimed.ts'
export { type CreateOwnedOptions, type CreationOptions, createOwned } from './create-owned.ts'
