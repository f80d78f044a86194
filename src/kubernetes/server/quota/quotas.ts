import { addQuantities, compareQuantities, equalJson, formatQuantity, type KubeObject, type Quantity } from '../../object/index.ts'
import { type Amounts, amountsOf, type Fields, fieldsOf, forbiddenError } from '../registry/index.ts'
import { parseEntry, type Store, type StoredEntry, type StoredEvent, type Table } from '../storage/index.ts'
import { isInScope } from './scopes.ts'
import { isMeasured, missingResources, tableOf, usageOf } from './usage.ts'

/** One ResourceQuota and its usage by the durable objects of its namespace. */
type QuotaUsage = {
  readonly name: string
  readonly spec: Fields
  /** By table, by name. Invariant: the usage of all objects of the table up to the last commit, and of no others. */
  readonly limits: ReadonlyMap<string, ReadonlyMap<string, { readonly hard: Quantity; used: Quantity }>>
  /** Objects up to this revision were counted when the quota was added. */
  readonly countedTo: number
}

const zero: Quantity = { nanos: 0n, form: 'decimal' }
/** Not counted, as in Kubernetes. */
const uncounted = new Set(['events'])

/**
 * Enforces ResourceQuotas. Usage is updated with each commit, so the cost of a write does not depend on the number of objects in the
 * namespace, and a namespace without a quota costs almost nothing. A quota is in effect when its write is durable.
 */
export class Quotas {
  readonly #store: Store
  readonly #table: Table
  readonly #byNamespace = new Map<string, QuotaUsage[]>()
  /** Called with the key of a quota when its status may have changed. */
  onStatusChange: (key: string) => void = () => {}

  constructor(store: Store) {
    this.#store = store
    this.#table = store.table('resourcequotas')
    for (const entry of this.#table.values()) this.#addQuota(entry)
    store.onCommit((table, events) => this.#observe(table, events))
  }

  /**
   * Rejects a write of `object` over `oldObject` that exceeds a quota of its namespace. Writes that are not yet durable are counted.
   * @throws {StatusError} Forbidden with Kubernetes' message.
   */
  admit(kind: { group: string; plural: string; storageName: string }, object: KubeObject, oldObject: KubeObject | undefined): void {
    const namespace = object.metadata.namespace ?? ''
    const quotas = this.#byNamespace.get(namespace)
    const { storageName: table } = kind
    if (!quotas || uncounted.has(table) || (oldObject && !isMeasured(table))) return
    const interested = quotas.filter(({ limits, spec }) => limits.has(table) && isInScope(spec, table, () => object))
    if (table === 'pods' && !oldObject) for (const quota of interested) this.#requireResources(quota, object)
    for (const { name, limits, spec } of interested) {
      const usage = usageOf(table, () => object)
      const already = oldObject && isInScope(spec, table, () => oldObject) ? usageOf(table, () => oldObject) : undefined
      const over: { name: string; requested: Quantity; used: Quantity; hard: Quantity }[] = []
      let pending: Amounts | undefined
      for (const [limit, { hard, used: durable }] of limits.get(table)!) {
        const requested = subtract(usage.get(limit) ?? zero, already?.get(limit))
        if (requested.nanos <= 0n) continue
        pending ??= this.#pending(namespace, table, spec)
        const used = addQuantities(durable, pending.get(limit) ?? zero)
        if (compareQuantities(addQuantities(used, requested), hard) > 0) over.push({ name: limit, requested, used, hard })
      }
      if (over.length === 0) continue
      over.sort((a, b) => (a.name < b.name ? -1 : 1))
      const format = (field: 'requested' | 'used' | 'hard') => over.map(item => `${item.name}=${formatQuantity(item[field])}`).join(',')
      const reason = `exceeded quota: ${name}, requested: ${format('requested')}, used: ${format('used')}, limited: ${format('hard')}`
      throw forbiddenError(kind, object.metadata.name, reason)
    }
  }

  /** The current `status` of a quota; undefined if it does not exist. */
  status(namespace: string, name: string): { hard: Record<string, string>; used: Record<string, string> } | undefined {
    const quota = this.#byNamespace.get(namespace)?.find(candidate => candidate.name === name)
    if (!quota) return undefined
    const hard: Record<string, string> = {}
    const used: Record<string, string> = {}
    for (const limits of quota.limits.values()) {
      for (const [limit, amounts] of limits) {
        hard[limit] = formatQuantity(amounts.hard)
        used[limit] = formatQuantity(amounts.used)
      }
    }
    return { hard: sortedByKey(hard), used: sortedByKey(used) }
  }

  keys(): string[] {
    return [...this.#byNamespace].flatMap(([namespace, quotas]) => quotas.map(({ name }) => `${namespace}/${name}`))
  }

  #requireResources({ name, limits }: QuotaUsage, pod: KubeObject): void {
    const missing = missingResources(fieldsOf(pod.spec), [...limits.get('pods')!.keys()])
    if (missing.size === 0) return
    const details = [...missing].map(([resource, containers]) => `${resource} for: ${[...new Set(containers)].sort().join(',')}`)
    throw forbiddenError({ group: '', plural: 'pods' }, pod.metadata.name, `failed quota: ${name}: must specify ${details.join('; ')}`)
  }

  /** The change of the usage by writes that are not yet durable. */
  #pending(namespace: string, tableName: string, spec: Fields): Amounts {
    const table = this.#store.table(tableName)
    const sum: Amounts = new Map()
    for (const { key, after } of this.#store.pending(table)) {
      const before = table.get(key)
      if ((after ?? before)?.namespace !== namespace) continue
      for (const [name, amount] of usageDelta(tableName, spec, before, after)) sum.set(name, addQuantities(sum.get(name) ?? zero, amount))
    }
    return sum
  }

  #observe(table: Table, events: readonly StoredEvent[]): void {
    if (table === this.#table) for (const { type, entry } of events) type === 'DELETED' ? this.#removeQuota(entry) : this.#addQuota(entry)
    if (this.#byNamespace.size === 0) return
    for (const { type, entry, before, revision } of events) {
      const quotas = this.#byNamespace.get(entry.namespace)
      if (!quotas || (type === 'MODIFIED' && !isMeasured(table.name))) continue
      for (const quota of quotas) {
        const limits = quota.limits.get(table.name)
        if (!limits || revision <= quota.countedTo) continue
        let isChanged = false
        for (const [name, amount] of usageDelta(table.name, quota.spec, before, type === 'DELETED' ? undefined : entry)) {
          const limit = limits.get(name)
          if (!limit || amount.nanos === 0n) continue
          limit.used = addQuantities(limit.used, amount)
          isChanged = true
        }
        if (isChanged) this.onStatusChange(`${entry.namespace}/${quota.name}`)
      }
    }
  }

  #addQuota(entry: StoredEntry): void {
    const { namespace, name, key } = entry
    const spec = fieldsOf(parseEntry(entry).spec)
    const quotas = this.#byNamespace.get(namespace) ?? []
    // A status write does not change the limits.
    if (!quotas.some(quota => quota.name === name && equalJson(quota.spec, spec))) {
      const others = quotas.filter(quota => quota.name !== name)
      const next = [...others, this.#countUsage(namespace, name, spec)].sort((a, b) => (a.name < b.name ? -1 : 1))
      this.#byNamespace.set(namespace, next)
    }
    this.onStatusChange(key)
  }

  #removeQuota({ namespace, name }: StoredEntry): void {
    const remaining = (this.#byNamespace.get(namespace) ?? []).filter(quota => quota.name !== name)
    if (remaining.length > 0) this.#byNamespace.set(namespace, remaining)
    else this.#byNamespace.delete(namespace)
  }

  #countUsage(namespace: string, name: string, spec: Fields): QuotaUsage {
    const limits = new Map<string, Map<string, { hard: Quantity; used: Quantity }>>()
    for (const [limit, hard] of amountsOf(spec.hard)) {
      const table = tableOf(limit)
      const ofTable = limits.get(table) ?? new Map()
      limits.set(table, ofTable.set(limit, { hard, used: zero }))
    }
    for (const [tableName, ofTable] of limits) {
      if (uncounted.has(tableName)) continue
      for (const entry of this.#store.table(tableName).inNamespace(namespace)) {
        for (const [limit, amount] of usageDelta(tableName, spec, undefined, entry)) {
          const amounts = ofTable.get(limit)
          if (amounts) amounts.used = addQuantities(amounts.used, amount)
        }
      }
    }
    return { name, spec, limits, countedTo: this.#store.revision }
  }
}

/** The change of the usage when `after` replaces `before`. */
function usageDelta(table: string, spec: Fields, before: StoredEntry | undefined, after: StoredEntry | undefined): Amounts {
  const sum: Amounts = after ? scopedUsage(table, spec, after) : new Map()
  if (before) for (const [name, amount] of scopedUsage(table, spec, before)) sum.set(name, subtract(sum.get(name) ?? zero, amount))
  return sum
}

function scopedUsage(table: string, spec: Fields, entry: StoredEntry): Amounts {
  let parsed: KubeObject | undefined
  const object = () => {
    parsed ??= parseEntry(entry)
    return parsed
  }
  return isInScope(spec, table, object) ? usageOf(table, object) : new Map()
}

function subtract(amount: Quantity, less: Quantity | undefined): Quantity {
  return less ? addQuantities(amount, { nanos: -less.nanos, form: less.form }) : amount
}

function sortedByKey(record: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}
