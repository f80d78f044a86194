/**
 * @module registry/crd: CustomResourceDefinitions. Start reading at `kinds-of-crd.ts`.
 * In: a CustomResourceDefinition. Out: its validation errors, its status, and the kinds that it serves.
 * Not here: which definitions exist and whether their names are free (`registry.ts`), deleting their objects (lifecycle/).
 */
export type { Crd, CrdNames, CrdScale } from './crd.ts'
export { crdSchema } from './crd-schema.ts'
export { crdStatus, ensureStorageVersion, isServed, markTerminating, type NameConflict } from './crd-status.ts'
export { kindsOfCrd, storageSchemaOf } from './kinds-of-crd.ts'
export { crdFinalizer, prepareCrd } from './prepare-crd.ts'
export { validateCrd } from './validate-crd.ts'
