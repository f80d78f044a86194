import {
  forbiddenField,
  invalidValue,
  type LabelSelector,
  type LabelSelectorObject,
  labelErrors,
  labelSelectorFromObject,
  labelValueErrors,
  matchesLabels,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
} from '../../../object/index.ts'
import type { Fields, RuleTable } from './type-rules.ts'

/** Rules of label selectors. */
export const selectorRules: RuleTable = {
  'meta.v1.LabelSelector': { validate: (value, { path }) => labelErrors(value.matchLabels, `${path}.matchLabels`) },
  'meta.v1.LabelSelectorRequirement': { validate: (value, { path }) => requirementErrors(value, path) },
}

function requirementErrors({ key, operator, values }: Fields, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const list = Array.isArray(values) ? values.map(String) : []
  if (operator === 'In' || operator === 'NotIn') {
    if (list.length === 0) causes.push(requiredValue(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (list.length > 0) causes.push(forbiddenField(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
  } else causes.push(invalidValue(`${path}.operator`, operator ?? '', 'not a valid selector operator'))
  for (const reason of qualifiedNameErrors(String(key ?? ''))) causes.push(invalidValue(`${path}.key`, key ?? '', reason))
  for (const [index, value] of list.entries()) {
    for (const reason of labelValueErrors(value)) causes.push(invalidValue(`${path}.values[${index}]`, value, reason))
  }
  return causes
}

/** The selector of a spec; undefined if it is missing or null, which is how Go prints a missing one. */
export function selectorOf(spec: Fields): LabelSelectorObject | undefined {
  return (spec.selector ?? undefined) as LabelSelectorObject | undefined
}

/**
 * Whether the selector of a workload matches the Pods of its own template, and does not match all Pods.
 * @param isRequired false for DaemonSets, which accept a missing selector.
 * @param unreadable the message for an invalid selector; undefined to report none.
 */
export function workloadSelectorErrors(
  spec: Fields,
  path: string,
  { kind, isRequired = true, unreadable = 'invalid label selector' }: { kind: string; isRequired?: boolean; unreadable?: string | null },
): StatusCause[] {
  const selectorPath = `${path}.selector`
  const selector = selectorOf(spec)
  const labels = templateLabels(spec)
  const mismatch = () => invalidValue(`${path}.template.metadata.labels`, goMap(labels), '`selector` does not match template `labels`')
  if (!selector) return isRequired ? [requiredValue(selectorPath), mismatch()] : [mismatch()]
  const causes: StatusCause[] = []
  if (isEmptySelector(selector)) causes.push(invalidValue(selectorPath, {}, `empty selector is invalid for ${kind}`))
  const parsed = parse(selector)
  if (!parsed) return unreadable === null ? causes : [...causes, invalidValue(selectorPath, goSelector(selector), unreadable)]
  if (!matchesLabels(parsed, labels)) causes.push(mismatch())
  return causes
}

/** `field is immutable` if the selector of the spec has changed. */
export function selectorChangeErrors(spec: Fields, oldSpec: Fields): StatusCause[] {
  const [newSelector, oldSelector] = [selectorOf(spec), selectorOf(oldSpec)].map(selector => selector && goSelector(selector))
  if (JSON.stringify(newSelector) === JSON.stringify(oldSelector)) return []
  return [invalidValue('spec.selector', newSelector ?? null, 'field is immutable')]
}

/** A selector as Kubernetes prints it in messages: keys in Go's order, missing fields omitted. */
export function goSelector({ matchLabels, matchExpressions }: LabelSelectorObject): LabelSelectorObject {
  return {
    ...(matchLabels && Object.keys(matchLabels).length > 0 && { matchLabels: goMap(matchLabels) ?? {} }),
    ...(matchExpressions &&
      matchExpressions.length > 0 && {
        matchExpressions: matchExpressions.map(({ key, operator, values }) => ({ key, operator, ...(values?.length && { values }) })),
      }),
  }
}

function isEmptySelector({ matchLabels, matchExpressions }: LabelSelectorObject): boolean {
  return Object.keys(matchLabels ?? {}).length + (matchExpressions?.length ?? 0) === 0
}

/** Whether `selector` matches `labels`; undefined if the selector is invalid. */
export function selects(selector: LabelSelectorObject, labels: Record<string, string> | undefined): boolean | undefined {
  const parsed = parse(selector)
  return parsed && matchesLabels(parsed, labels)
}

export function templateLabels(spec: Fields): Record<string, string> | undefined {
  const template = spec.template as { metadata?: { labels?: Record<string, string> } } | undefined
  return template?.metadata?.labels
}

/** A map as Go prints it: sorted by key, null if it is missing. */
export function goMap(labels: Record<string, string> | undefined): Record<string, string> | null {
  if (!labels) return null
  return Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function parse(selector: LabelSelectorObject): LabelSelector | undefined {
  try {
    return labelSelectorFromObject(selector)
  } catch {
    return undefined
  }
}
