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

/** The selectors of an aggregated ClusterRole; undefined for a ClusterRole with rules of its own. */
export function aggregationSelectors({ aggregationRule }: KubeObject): LabelSelectorObject[] | undefined {
  if (!isJsonObject(aggregationRule)) return undefined
  const { clusterRoleSelectors } = aggregationRule
  return Array.isArray(clusterRoleSelectors) ? (clusterRoleSelectors as LabelSelectorObject[]) : undefined
}

/**
 * The rules of an aggregated ClusterRole: the distinct rules of all roles that its selectors match, by selector and then by name, as
 * Kubernetes' clusterrole-aggregation controller collects them.
 * @param roles all ClusterRoles sorted by name.
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
