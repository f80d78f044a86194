/**
 * @module kubernetes/schema: applies structural schemas to objects. Start reading at `validate.ts`.
 * In: a structural schema (its type is in `object/structural-schema.ts`) and a JSON value. Out: defaults, pruned copies, causes of a rejection.
 * Pure, with the cost limit of `object/cost-limit.ts`: anyone who may create a CRD can provide a schema.
 * Out of scope: evaluating CEL (`cel/`, loaded with the first rule, see `validation-rules.ts`).
 */
export * from './default.ts'
export * from './prune.ts'
export * from './structural.ts'
export * from './validate.ts'
export * from './validation-rules.ts'
