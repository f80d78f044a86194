/**
 * @module registry/admission: what other objects have to say about a new one: the defaults and bounds of LimitRanges, the class
 * that is marked as the default. Start reading at `limit-ranges.ts`.
 * In: an object, a look at what is stored. Out: its fields filled in, or a refusal in the words of Kubernetes' admission plugin.
 * Not here: quotas, which are counted (quota/), and what a type or a kind says by itself (type-rules/, kinds/).
 */
export { defaultClass } from './default-class.ts'
export { forbiddenError } from './forbidden-error.ts'
export { applyLimitRangeDefaults, validateClaimLimits, validatePodLimits } from './limit-ranges.ts'
export { type Amounts, addAmounts, amountsOf, podLimits, podRequests } from './pod-resources.ts'
