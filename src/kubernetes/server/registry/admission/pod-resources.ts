import { addQuantities, compareQuantities, parseQuantity, type Quantity } from '../../../object/index.ts'
import { type Fields, fieldsOf, itemsOf, textOf } from '../type-rules/index.ts'

/** Amounts by resource name, such as `cpu`. */
export type Amounts = Map<string, Quantity>

export function amountsOf(fields: unknown): Amounts {
  return new Map(Object.entries(fieldsOf(fields)).map(([name, amount]) => [name, parseQuantity(textOf(amount))]))
}

export function addAmounts(to: Amounts, more: ReadonlyMap<string, Quantity>): void {
  for (const [name, amount] of more) {
    const current = to.get(name)
    to.set(name, current ? addQuantities(current, amount) : amount)
  }
}

function raiseTo(amounts: Amounts, floor: ReadonlyMap<string, Quantity>): void {
  for (const [name, amount] of floor) {
    const current = amounts.get(name)
    if (!current || compareQuantities(amount, current) > 0) amounts.set(name, amount)
  }
}

/**
 * The resources of a Pod, as Kubernetes computes them: the sum of the containers that run at the same time, or the requests of an init
 * container (with the sidecars started before it) if those are larger. Amounts of cpu and memory that the Pod itself declares take
 * precedence.
 */
function aggregateResources(spec: Fields, field: 'requests' | 'limits'): Amounts {
  const sum: Amounts = new Map()
  for (const { resources } of itemsOf(spec.containers)) addAmounts(sum, amountsOf(fieldsOf(resources)[field]))
  const sidecars: Amounts = new Map()
  const peak: Amounts = new Map()
  for (const { resources, restartPolicy } of itemsOf(spec.initContainers)) {
    const amounts = amountsOf(fieldsOf(resources)[field])
    if (restartPolicy === 'Always') {
      addAmounts(sum, amounts)
      addAmounts(sidecars, amounts)
      raiseTo(peak, sidecars)
    } else {
      addAmounts(amounts, sidecars)
      raiseTo(peak, amounts)
    }
  }
  raiseTo(sum, peak)
  for (const [name, amount] of amountsOf(fieldsOf(spec.resources)[field])) if (name === 'cpu' || name === 'memory') sum.set(name, amount)
  return sum
}

export function podRequests(spec: Fields): Amounts {
  return aggregateResources(spec, 'requests')
}

export function podLimits(spec: Fields): Amounts {
  return aggregateResources(spec, 'limits')
}
