/**
 * @module kubernetes/object: Kubernetes objects as values: metadata, names, selectors, patches, quantities, errors. Start reading at
 * `object.ts`, then `resource.ts`.
 * In: plain JSON values. Out: parsed and patched copies, causes of a rejection, errors with Kubernetes' reasons.
 * Pure: no file or socket is read, no argument is changed, and the only clock is in `cost-limit.ts`.
 * Out of scope: validation by schema (`schema/`), CEL (`cel/`), field ownership (`apply/`).
 */
export * from './changed-fields.ts'
export * from './condition.ts'
export * from './declare.ts'
export * from './duration.ts'
export * from './field-cause.ts'
export * from './json.ts'
export * from './json-limits.ts'
export * from './json-number.ts'
export * from './json-patch.ts'
export * from './json-path.ts'
export * from './json-strict.ts'
export * from './json-syntax-error.ts'
export * from './kstatus.ts'
export * from './merge-patch.ts'
export * from './names.ts'
export * from './object.ts'
export * from './quantity.ts'
export * from './resource.ts'
export * from './selector.ts'
export * from './shard-selector.ts'
export * from './status-error.ts'
export { applyStrategicPatch } from './strategic-merge.ts'
export * from './string-format.ts'
export * from './structural-schema.ts'
