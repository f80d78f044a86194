import {
  type KubeObject,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  parseShardSelector,
  shardTest,
} from '../object/index.ts'

/** Selects objects of a kind; an empty field selects everything. */
export type Selection = {
  /** Default: all namespaces. */
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  /**
   * A shard of the objects by hash of their UID or namespace, such as `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`.
   * Servers that support `shardSelector` (Kubernetes 1.36 with ShardedListAndWatch, the embedded server) send only that shard; otherwise
   * the client filters.
   */
  shardSelector?: string | undefined
}

/** Whether a list or watch with this selection includes an object, ignoring its shard. */
export function selectionTest({ namespace, labelSelector, fieldSelector }: Selection): (object: KubeObject<unknown>) => boolean {
  const labels = labelSelector ? parseLabelSelector(labelSelector) : undefined
  const fields = fieldSelector ? parseFieldSelector(fieldSelector) : undefined
  return object =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (!labels || matchesLabels(labels, object.metadata.labels)) &&
    (!fields || matchesFields(fields, field => readField(object, field)))
}

/** Whether an object belongs to the shard. Tested for every received object, because most servers ignore the selector. */
export function shardMemberTest({ shardSelector }: Selection): (object: KubeObject<unknown>) => boolean {
  if (shardSelector === undefined) return () => true
  const selector = parseShardSelector(shardSelector)
  const isIn = shardTest(selector)
  return ({ metadata }) => isIn((selector.field === 'uid' ? metadata.uid : metadata.namespace) ?? '')
}

function readField(object: unknown, path: string): string | undefined {
  let value = object
  for (const part of path.split('.')) value = (value as { [name: string]: unknown } | undefined | null)?.[part]
  return value === undefined || value === null ? undefined : String(value)
}
