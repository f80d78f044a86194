import { labels } from '../../api/index.ts'
import { parseFieldSelector, parseLabelSelector } from '../../kubernetes/object/index.ts'

/** The selectors of a list, watch or deletion of a collection. */
export type Selection = { readonly labelSelector?: string | undefined; readonly fieldSelector?: string | undefined }

/**
 * Whether objects with this value of a field may be selected: the namespace of objects, or the name of Namespaces. What cannot be read selects everything:
 * the partitions reject it.
 */
export function mayMatchField({ fieldSelector = '' }: Selection, field: 'metadata.namespace' | 'metadata.name', value: string): boolean {
  try {
    const { requirements } = parseFieldSelector(fieldSelector)
    return requirements.every(each => each.field !== field || (each.operator === '=') === (each.value === value))
  } catch {
    return true
  }
}

/** Whether only Leases of Workers are selected, by the label that the servers set on these ({@link labels.workerBucket}). */
export function selectsWorkerLeases({ labelSelector = '' }: Selection): boolean {
  try {
    const { requirements } = parseLabelSelector(labelSelector)
    return requirements.some(({ key, operator }) => key === labels.workerBucket && operator !== 'NotIn' && operator !== 'DoesNotExist')
  } catch {
    return false
  }
}
