import {
  type KubeObject,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  parseShardSelector,
  shardTest,
} from '../object/index.ts'

/** Which objects of a kind: empty fields select everything. */
export type Selection = {
  /** Default: all namespaces. */
  namespace?: string | undefined
  labelSelector?: string | undefined
  fieldSelector?: string | undefined
  /**
   * A part of the objects by hash of their uid or namespace, as `shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')`.
   * Where the server knows `shardSelector` (Kubernetes 1.36 with ShardedListAndWatch, the embedded server) it sends no others; else they are
   * left out here.
   */
  shardSelector?: string | undefined
}

/** Whether the server would send an object to a list or watch with this selection, its shard aside. */
export function selectionTest({ namespace, labelSelector, fieldSelector }: Selection): (object: KubeObject<unknown>) => boolean {
  const labels = labelSelector ? parseLabelSelector(labelSelector) : undefined
  const fields = fieldSelector ? parseFieldSelector(fieldSelector) : undefined
  return object =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (!labels || matchesLabels(labels, object.metadata.labels)) &&
    (!fields || matchesFields(fields, field => readField(object, field)))
}

/** Whether an object is of the shard: asked of all that the server sends, since most servers pass the selector over. */
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
