/**
 * @module registry/admission: admission rules that depend on other objects: the defaults and bounds of LimitRanges, default classes. Start
 * reading at `limit-ranges.ts`.
 * In: an object and an ObjectReader. Out: the object with defaults, or a Forbidden error with the message of Kubernetes' admission plugin.
 * Out of scope: quotas (quota/), rules of a type or a kind (type-rules/, kinds/).
 */
export { defaultClass } from './default-class.ts'
export { forbiddenError } from './forbidden-error.ts'
export { applyLimitRangeDefaults, validateClaimLimits, validatePodLimits } from './limit-ranges.ts'
export { type Amounts, addAmounts, amountsOf, podLimits, podRequests } from './pod-resources.ts'
