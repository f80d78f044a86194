import { addQuantities, compareQuantities, formatQuantity, parseQuantity } from '../kubernetes/object/index.ts'

/**
 * The memory limit of the Run after one that failed with OutOfMemory: doubled, up to `autoRaise.memory`. Undefined when it cannot be
 * raised: no limit, no autoRaise, or the maximum is reached.
 */
export function raisedMemory(resources: { memory?: string; autoRaise?: { memory: string } } | undefined): string | undefined {
  if (resources?.memory === undefined || resources.autoRaise === undefined) return undefined
  const current = parseQuantity(resources.memory)
  const maximum = parseQuantity(resources.autoRaise.memory)
  if (compareQuantities(current, maximum) >= 0) return undefined
  const doubled = addQuantities(current, current)
  return formatQuantity(compareQuantities(doubled, maximum) < 0 ? doubled : maximum)
}
