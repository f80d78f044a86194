import { addQuantities, compareQuantities, formatQuantity, parseQuantity } from '../kubernetes/object/index.ts'

/**
 * The memory that the Run after one which ran out of it gets: twice as much, up to `autoRaise.memory`. Undefined when there is nothing
 * to raise: no limit, no autoRaise, or the most was already given.
 */
export function raisedMemory(resources: { memory?: string; autoRaise?: { memory: string } } | undefined): string | undefined {
  if (resources?.memory === undefined || resources.autoRaise === undefined) return undefined
  const now = parseQuantity(resources.memory)
  const most = parseQuantity(resources.autoRaise.memory)
  if (compareQuantities(now, most) >= 0) return undefined
  const twice = addQuantities(now, now)
  return formatQuantity(compareQuantities(twice, most) < 0 ? twice : most)
}
