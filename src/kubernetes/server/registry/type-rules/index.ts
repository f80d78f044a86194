/**
 * @module registry/type-rules: defaults and validation of Kubernetes types, wherever a type is used. Start reading at `type-rules.ts`.
 * In: an object whose fields have the types of its schema. Out: the object with its defaults, and its validation errors.
 * Rules of a single kind are next to its declaration in kinds/.
 */

export { fillDefaults, ruleErrors } from './apply-rules.ts'
export { ingressStatusErrors, serviceStatusErrors } from './balancer-status.ts'
export { invalidWithoutValue } from './batch-rules.ts'
export {
  containerResourceName,
  countedResources,
  fieldsOf,
  inRange,
  intOf,
  isStandardResource,
  itemsOf,
  join,
  portNumberOrName,
  quantityErrors,
  resourceName,
  textOf,
  textsOf,
} from './checks.ts'
export { canonicalIpv6, cidrErrors, endpointIpErrors, ipErrors, isAddress } from './ip-address.ts'
export { firstCommonIndex, readIndexes } from './job-indexes.ts'
export { negativeErrors, numberOf } from './number-checks.ts'
export { goMap, goSelector, selectorChangeErrors, selects, templateLabels } from './selector-rules.ts'
export type { Fields, RuleTable, TypeRules, ValidationContext } from './type-rules.ts'
