import {
  equalJson,
  isJsonObject,
  type KubeObject,
  type LabelSelectorObject,
  labelSelectorFromObject,
  matchesLabels,
} from '../../../object/index.ts'
import type { PolicyRule } from './policy-rule.ts'
import { rulesIn } from './rbac.ts'

/** The selectors of an aggregated ClusterRole, or undefined for one that says its rules itself. */
export function aggregationSelectors({ aggregationRule }: KubeObject): LabelSelectorObject[] | undefined {
  if (!isJsonObject(aggregationRule)) return undefined
  const { clusterRoleSelectors } = aggregationRule
  return Array.isArray(clusterRoleSelectors) ? (clusterRoleSelectors as LabelSelectorObject[]) : undefined
}

/**
 * The rules of an aggregated ClusterRole: those of every role that a selector selects, selector by selector and each by
 * name, equal ones once, as Kubernetes' clusterrole-aggregation controller gathers them.
 * @param roles all ClusterRoles in the order of their names.
 */
export function aggregateRules(role: KubeObject, roles: readonly KubeObject[]): PolicyRule[] {
  const rules: PolicyRule[] = []
  for (const selectorObject of aggregationSelectors(role) ?? []) {
    const selector = labelSelectorFromObject(selectorObject)
    for (const other of roles) {
      if (other.metadata.name === role.metadata.name || !matchesLabels(selector, other.metadata.labels)) continue
      for (const rule of rulesIn(other)) if (!rules.some(known => equalJson(known, rule))) rules.push(rule)
    }
  }
  return rules
}
