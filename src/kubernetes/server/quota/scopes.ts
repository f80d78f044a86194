import type { KubeObject } from '../../object/index.ts'
import { type Fields, fieldsOf, itemsOf, textOf, textsOf } from '../registry/index.ts'

/** Whether an object is in the scopes of a quota: all scopes must match, and scopes match only Pods. */
export function isInScope(spec: Fields, table: string, object: () => KubeObject): boolean {
  const selectors = [
    ...textsOf(spec.scopes).map((scopeName): Fields => ({ scopeName, operator: 'Exists' })),
    ...itemsOf(fieldsOf(spec.scopeSelector).matchExpressions),
  ]
  if (selectors.length === 0) return true
  if (table !== 'pods') return false
  const pod = object()
  return selectors.every(selector => matchesPod(selector, pod))
}

function matchesPod({ scopeName, operator, values }: Fields, { spec, status }: KubeObject): boolean {
  const fields = fieldsOf(spec)
  const { activeDeadlineSeconds, priorityClassName } = fields
  const hasDeadline = typeof activeDeadlineSeconds === 'number' && activeDeadlineSeconds >= 0
  const isBestEffort = fieldsOf(status).qosClass === 'BestEffort'
  switch (scopeName) {
    case 'Terminating':
      return hasDeadline
    case 'NotTerminating':
      return !hasDeadline
    case 'BestEffort':
      return isBestEffort
    case 'NotBestEffort':
      return !isBestEffort
    case 'PriorityClass':
      return matchesName(textOf(priorityClassName), textOf(operator), textsOf(values))
    case 'CrossNamespacePodAffinity':
      return ['podAffinity', 'podAntiAffinity'].some(kind => crossesNamespaces(fieldsOf(fieldsOf(fields.affinity)[kind])))
    default:
      return false
  }
}

function matchesName(name: string, operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return name !== '' && values.includes(name)
    case 'NotIn':
      return name === '' || !values.includes(name)
    case 'Exists':
      return name !== ''
    default:
      return name === ''
  }
}

function crossesNamespaces(affinity: Fields): boolean {
  const terms = [
    ...itemsOf(affinity.requiredDuringSchedulingIgnoredDuringExecution),
    ...itemsOf(affinity.preferredDuringSchedulingIgnoredDuringExecution).map(({ podAffinityTerm }) => fieldsOf(podAffinityTerm)),
  ]
  return terms.some(({ namespaces, namespaceSelector }) => textsOf(namespaces).length > 0 || namespaceSelector !== undefined)
}
