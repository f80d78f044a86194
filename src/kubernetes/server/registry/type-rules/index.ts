/**
 * @module registry/type-rules: defaults and validation that belong to a type, not to a kind. Start reading at `type-rules.ts`.
 * In: an object whose fields have the types they should have. Out: the object with its defaults, and what is wrong with it.
 * Rules of one kind alone stand beside its row in kinds/.
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
