import { labelValueErrors } from '../../../object/index.ts'
import { type Fields, itemsOf, textOf, textsOf } from '../type-rules/index.ts'

const deprecatedLabels: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  ['failure-domain.beta.kubernetes.io/region', 'deprecated since v1.17; use "topology.kubernetes.io/region" instead'],
  ['failure-domain.beta.kubernetes.io/zone', 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
  ['beta.kubernetes.io/instance-type', 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'],
  ['app.kubernetes.io/created-by', 'deprecated since v1.9'],
  ['scheduler.alpha.kubernetes.io/preferAvoidPods', 'deprecated since v1.22; use Taints and Tolerations instead'],
  ['node-role.kubernetes.io/master', 'use "node-role.kubernetes.io/control-plane" instead'],
])

/** The warning about a deprecated node label; undefined for other labels. */
export function deprecatedNodeLabel(key: unknown): string | undefined {
  return deprecatedLabels.get(textOf(key))
}

/** @param checksValues false for preferred terms, whose values were validated already. */
export function nodeTermWarnings(path: string, term: Fields, checksValues: boolean): string[] {
  return itemsOf(term.matchExpressions).flatMap(({ key, values }, index) => {
    const itemPath = `${path}.matchExpressions[${index}]`
    const reason = deprecatedNodeLabel(key)
    const warnings = reason ? [`${itemPath}.key: ${key} is ${reason}`] : []
    if (!checksValues) return warnings
    const invalid = textsOf(values).flatMap((value, i) =>
      labelValueErrors(value).map(error => `${itemPath}.values[${i}]: ${value} is invalid, ${error}`),
    )
    return [...warnings, ...invalid]
  })
}
