import {
  forbiddenField,
  invalidValue,
  labelValueErrors,
  nameErrors,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
} from '../../../object/index.ts'
import { intOf, oneOf, textOf, textsOf } from './checks.ts'
import type { Fields, RuleTable, ValidationContext } from './type-rules.ts'

const tolerationEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

function tolerationErrors({ key, operator, value, effect, tolerationSeconds }: Fields, { path }: ValidationContext): StatusCause[] {
  const causes: StatusCause[] = []
  const [name, operatorName, valueText] = [textOf(key), textOf(operator), textOf(value)]
  if (name !== '') causes.push(...qualifiedNameErrors(name).map(reason => invalidValue(`${path}.key`, name, reason)))
  else if (operatorName !== 'Exists') {
    causes.push(
      invalidValue(
        `${path}.operator`,
        operatorName,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      ),
    )
  }
  if (tolerationSeconds !== undefined && textOf(effect) !== 'NoExecute') {
    causes.push(invalidValue(`${path}.effect`, textOf(effect), "effect must be 'NoExecute' when `tolerationSeconds` is set"))
  }
  switch (operatorName) {
    case '':
    case 'Equal':
      causes.push(...labelValueErrors(valueText).map(reason => invalidValue(`${path}.operator`, valueText, reason)))
      break
    case 'Exists':
      if (valueText !== '') causes.push(invalidValue(`${path}.operator`, valueText, "value must be empty when `operator` is 'Exists'"))
      break
    default:
      causes.push(...oneOf(`${path}.operator`, operatorName, ['Equal', 'Exists']))
  }
  if (textOf(effect) !== '') causes.push(...oneOf(`${path}.effect`, effect, tolerationEffects))
  return causes
}

const nodeOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']

function nodeRequirementErrors({ key, operator, values }: Fields, { path }: ValidationContext): StatusCause[] {
  const causes: StatusCause[] = []
  const provided = textsOf(values)
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (provided.length === 0) causes.push(requiredValue(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
      break
    case 'Exists':
    case 'DoesNotExist':
      if (provided.length > 0) {
        causes.push(forbiddenField(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
      }
      break
    case 'Gt':
    case 'Lt':
      if (provided.length !== 1)
        causes.push(requiredValue(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
      break
    default:
      causes.push(invalidValue(`${path}.operator`, textOf(operator), 'not a valid selector operator'))
  }
  causes.push(...qualifiedNameErrors(textOf(key)).map(reason => invalidValue(`${path}.key`, textOf(key), reason)))
  return causes
}

function weightErrors({ weight }: Fields, { path }: ValidationContext): StatusCause[] {
  const number = intOf(weight)
  return number >= 1 && number <= 100 ? [] : [invalidValue(`${path}.weight`, number, 'must be in the range 1-100')]
}

/** Rules of the types that restrict where Pods run. */
export const schedulingRules: RuleTable = {
  'core.v1.Toleration': { validate: tolerationErrors, uncheckedEnums: ['operator', 'effect'] },
  'core.v1.NodeSelector': { required: { nodeSelectorTerms: 'must have at least one node selector term' } },
  'core.v1.NodeSelectorRequirement': {
    validate: nodeRequirementErrors,
    uncheckedEnums: ['operator'],
    enumOrder: { operator: nodeOperators },
  },
  'core.v1.PreferredSchedulingTerm': { validate: weightErrors },
  'core.v1.WeightedPodAffinityTerm': { validate: weightErrors },
  'core.v1.PodAffinityTerm': {
    required: { topologyKey: 'can not be empty' },
    validate: ({ topologyKey, namespaces }, { path }) => [
      ...qualifiedNameErrors(textOf(topologyKey)).map(reason => invalidValue(`${path}.topologyKey`, textOf(topologyKey), reason)),
      ...textsOf(namespaces).flatMap((namespace, index) =>
        nameErrors(namespace, 'dns1123Label').map(reason => invalidValue(`${path}.namespaces[${index}]`, namespace, reason)),
      ),
    ],
  },
  'core.v1.TopologySpreadConstraint': {
    required: { topologyKey: 'can not be empty' },
    enumOrder: { whenUnsatisfiable: ['DoNotSchedule', 'ScheduleAnyway'] },
    validate: ({ maxSkew, minDomains }, { path }) => [
      ...(intOf(maxSkew) > 0 ? [] : [invalidValue(`${path}.maxSkew`, intOf(maxSkew), 'must be greater than zero')]),
      ...(minDomains === undefined || intOf(minDomains) > 0
        ? []
        : [invalidValue(`${path}.minDomains`, minDomains, 'must be greater than zero')]),
    ],
  },
}
