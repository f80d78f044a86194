import {
  type FieldSelector,
  type LabelSelector,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  parseShardSelector,
  shardTest,
} from '../../kubernetes/object/index.ts'
import type { SelectedValues, VersionValues } from '../../kubernetes/util/index.ts'

/** The objects that a watch selects, from its query. */
export type WatchSelection = {
  /** It selects everything: its events are the same for all clients. */
  readonly isWhole: boolean
  /** A field that must have this value, so that an event need not be compared with every selection. */
  readonly key: { readonly field: string; readonly value: string } | undefined
  /** @throws {UnknownField} for a field that the partition does not send. */
  matches(object: SelectedValues, values: VersionValues): boolean
}

/** A field became selectable after the shared watch began: it must be opened again. */
export class UnknownField extends Error {
  override readonly name = 'UnknownField'
}

/**
 * The selection of a list or watch by labels, fields and shard. The values come from the server's own selection, so that both decide the same.
 * @throws {StatusError} BadRequest for an invalid selector, in Kubernetes' words.
 */
export function readWatchSelection(query: URLSearchParams): WatchSelection {
  const labels: LabelSelector = parseLabelSelector(query.get('labelSelector') ?? '')
  const fields: FieldSelector = parseFieldSelector(query.get('fieldSelector') ?? '')
  const shardText = query.get('shardSelector')
  const shard = shardText ? parseShardSelector(shardText) : undefined
  const isInShard = shard && shardTest(shard)
  const key = fields.requirements.find(({ operator }) => operator === '=')
  return {
    isWhole: labels.requirements.length === 0 && fields.requirements.length === 0 && !shard,
    key: key && { field: key.field, value: key.value },
    matches(object, values) {
      for (const { field, operator, value } of fields.requirements)
        if ((fieldValue(object, values, field) === value) !== (operator === '=')) return false
      if (labels.requirements.length > 0 && !matchesLabels(labels, values.labels)) return false
      return !isInShard || isInShard(shard.field === 'uid' ? object.uid : object.namespace)
    },
  }
}

/** @throws {UnknownField} */
export function fieldValue({ namespace, name }: SelectedValues, { fields }: VersionValues, field: string): string {
  if (field === 'metadata.name') return name
  if (field === 'metadata.namespace') return namespace
  const value = fields[field]
  if (value === undefined) throw new UnknownField(field)
  return value
}
