/**
 * @module kubernetes/schema: what a structural schema does to an object. Start reading at `validate.ts`.
 * In: a structural schema (its type is `object/structural-schema.ts`) and a JSON value. Out: defaults, pruned copies, causes of a refusal.
 * Pure, and bounded by `object/cost-limit.ts`: a schema comes from anyone with the right to create a CRD.
 * Not done here: evaluating CEL (`cel/`, loaded with the first rule, see `validation-rules.ts`).
 */
export * from './default.ts'
export * from './prune.ts'
export * from './structural.ts'
export * from './validate.ts'
export * from './validation-rules.ts'
