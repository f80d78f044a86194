import { labels as ownLabels } from '../../api/index.ts'
import { isJsonObject, type KubeObject, labelErrors } from '../../kubernetes/object/index.ts'

/**
 * Which labels the workers of a join token have: they decide which Runs a worker gets (`spec.placement.workerLabels`), and with
 * them which Secrets, so it is not for the machine that joins to choose them.
 */
export type LabelPolicy = {
  /** Every worker has these. */
  readonly labels: Readonly<Record<string, string>>
  /** What a worker may choose: `key` with any value, `key=value`, or `*` for everything. */
  readonly allowLabels: readonly string[]
}

export const anyLabel = '*'

/** What is wrong with the terms, for who makes a token; undefined: nothing. */
export function labelPolicyError({ labels, allowLabels }: LabelPolicy): string | undefined {
  const pairs = allowLabels.filter(each => each !== anyLabel).map(each => parseLabel(each))
  const [wrong] = [labels, ...pairs.map(([key, value]) => ({ [key]: value ?? '' }))].flatMap(each => labelErrors(each, 'labels'))
  if (wrong) return `label ${wrong.field}: ${wrong.message}`
  const keys = [...Object.keys(labels), ...pairs.map(([key]) => key)]
  return keys.includes(ownLabels.pool) ? `the label ${ownLabels.pool} is set by the pool of the token` : undefined
}

/** The labels of a worker that asks for `wanted`, or why it may not have them. */
export function allowedLabels(
  { labels, allowLabels }: LabelPolicy,
  wanted: unknown,
): { labels: Record<string, string> } | { refused: string } {
  if (wanted !== undefined && !isJsonObject(wanted)) return { refused: 'labels must be an object' }
  const [wrong] = labelErrors(wanted, 'labels')
  if (wrong) return { refused: `label ${wrong.field}: ${wrong.message}` }
  for (const [key, value] of Object.entries((wanted ?? {}) as Record<string, string>)) {
    const isAllowed = labels[key] === undefined ? key !== ownLabels.pool && isLabelAllowed(allowLabels, key, value) : labels[key] === value
    if (!isAllowed)
      return { refused: `the join token does not allow the label ${key}=${value}; ${formatLabelPolicy({ labels, allowLabels })}` }
  }
  return { labels: { ...(wanted as Record<string, string> | undefined), ...labels } }
}

/** For people. */
export function formatLabelPolicy({ labels, allowLabels }: LabelPolicy): string {
  const given = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  const gives = given.length > 0 ? `it gives ${given.join(', ')}` : 'it gives none'
  const allows = allowLabels.length === 0 ? 'allows no others' : `allows ${allowLabels.includes(anyLabel) ? 'any' : allowLabels.join(', ')}`
  return `${gives} and ${allows}`
}

const isLabelAllowed = (allowLabels: readonly string[], key: string, value: string) =>
  allowLabels.some(each => each === anyLabel || each === key || each === `${key}=${value}`)

function parseLabel(text: string): [key: string, value: string | undefined] {
  const at = text.indexOf('=')
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

const labelsAnnotationKey = 'oarlock.dev/worker-labels'

export const workerLabelsAnnotation = (labels: Readonly<Record<string, string>>) => ({ [labelsAnnotationKey]: JSON.stringify(labels) })

/** The labels that were admitted, as its credential's Secret has them; none where it says nothing. */
export function credentialLabels(secret: Pick<KubeObject, 'metadata'> | undefined): Record<string, string> {
  const text = secret?.metadata.annotations?.[labelsAnnotationKey]
  return text === undefined ? {} : (JSON.parse(text) as Record<string, string>)
}
