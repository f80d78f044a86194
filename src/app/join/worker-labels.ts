import { labels as ownLabels } from '../../api/index.ts'
import { isJsonObject, type KubeObject, labelErrors } from '../../kubernetes/object/index.ts'

/**
 * Which labels the workers of a join token can have. Labels decide which Runs a worker gets (`spec.placement.workerLabels`), and thus
 * which Secrets it can read. A machine that joins must not choose them freely.
 */
export type LabelPolicy = {
  /** The labels of every worker. */
  readonly labels: Readonly<Record<string, string>>
  /** The labels that a worker can choose: `key` with any value, `key=value`, or `*` for any label. */
  readonly allowLabels: readonly string[]
}

export const anyLabel = '*'

/** Why the policy is invalid; undefined if it is valid. */
export function labelPolicyError({ labels, allowLabels }: LabelPolicy): string | undefined {
  const pairs = allowLabels.filter(each => each !== anyLabel).map(each => parseLabel(each))
  const [error] = [labels, ...pairs.map(([key, value]) => ({ [key]: value ?? '' }))].flatMap(each => labelErrors(each, 'labels'))
  if (error) return `label ${error.field}: ${error.message}`
  const keys = [...Object.keys(labels), ...pairs.map(([key]) => key)]
  return keys.includes(ownLabels.pool) ? `the pool of the token sets the label ${ownLabels.pool}` : undefined
}

/** The labels of a worker that requests `requested`, or why it cannot have them. */
export function allowedLabels(
  { labels, allowLabels }: LabelPolicy,
  requested: unknown,
): { labels: Record<string, string> } | { rejected: string } {
  if (requested !== undefined && !isJsonObject(requested)) return { rejected: 'labels must be an object' }
  const [error] = labelErrors(requested, 'labels')
  if (error) return { rejected: `label ${error.field}: ${error.message}` }
  for (const [key, value] of Object.entries((requested ?? {}) as Record<string, string>)) {
    const isAllowed = labels[key] === undefined ? key !== ownLabels.pool && isLabelAllowed(allowLabels, key, value) : labels[key] === value
    if (!isAllowed)
      return { rejected: `the join token does not allow label ${key}=${value}: ${formatLabelPolicy({ labels, allowLabels })}` }
  }
  return { labels: { ...(requested as Record<string, string> | undefined), ...labels } }
}

function formatLabelPolicy({ labels, allowLabels }: LabelPolicy): string {
  const fixed = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  const sets = fixed.length > 0 ? `it sets ${fixed.join(', ')}` : 'it sets none'
  const allows = allowLabels.length === 0 ? 'allows no other' : `allows ${allowLabels.includes(anyLabel) ? 'any' : allowLabels.join(', ')}`
  return `${sets} and ${allows}`
}

const isLabelAllowed = (allowLabels: readonly string[], key: string, value: string) =>
  allowLabels.some(each => each === anyLabel || each === key || each === `${key}=${value}`)

function parseLabel(text: string): [key: string, value: string | undefined] {
  const at = text.indexOf('=')
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

/** On the Secret of a worker's credential: the labels that the worker joined with, as JSON. */
export const workerLabelsAnnotation = 'oarlock.dev/worker-labels'

/**
 * The labels that a worker joined with, from the Secret of its credential; none without the annotation. Undefined if the annotation is
 * malformed: the worker must then get no labels, and no error of another kind than a rejection.
 */
export function credentialLabels(secret: Pick<KubeObject, 'metadata'> | undefined): Record<string, string> | undefined {
  const text = secret?.metadata.annotations?.[workerLabelsAnnotation]
  if (text === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isJsonObject(value) || labelErrors(value, 'labels').length > 0) return undefined
  return value as Record<string, string>
}
