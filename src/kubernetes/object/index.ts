/**
 * @module kube: what a Kubernetes object is. Start reading at `object.ts`, then `resource.ts`.
 * In: plain JSON values. Out: verdicts, patched copies, errors with Kubernetes' reasons.
 * Pure: nothing here reads a disk or a socket, nothing changes its arguments, and the one clock is the stopwatch of `meter.ts`.
 * `cel/` is loaded with the first validation rule, see `validation-rules.ts`.
 */
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
export * from './merge-patch.ts'
export * from './names.ts'
export * from './object.ts'
export * from './quantity.ts'
export * from './resource.ts'
export * from './selector.ts'
export * from './shard-selector.ts'
export * from './status-error.ts'
export * from './string-format.ts'
export * from './structural-schema.ts'
