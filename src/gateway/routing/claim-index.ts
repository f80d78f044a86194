import { claimName, type NameClaim } from '../kinds/index.ts'
import type { ObjectOwner } from './decide-route.ts'

/** Who owns which names, by their claims. `hasClaims` is exact: a partition with objects of a table is part of its lists, whatever its roles. */
export class ClaimIndex {
  /** By name of the claim. */
  readonly #owners = new Map<string, ObjectOwner & { readonly table: string; readonly version: number }>()
  /** How many claims a partition has of a table: more than 0. By both. */
  readonly #counts = new Map<string, number>()

  ownerOf(table: string, name: string): ObjectOwner | undefined {
    return this.#owners.get(claimName(table, name))
  }

  hasClaims(partition: string, table: string): boolean {
    return this.#counts.has(countKey(partition, table))
  }

  replace(claims: readonly NameClaim[]): void {
    this.#owners.clear()
    this.#counts.clear()
    for (const claim of claims) this.set(claim)
  }

  /** What is older than the known claim is ignored: reads and the watch overtake each other. */
  set({ metadata: { name: key, resourceVersion }, spec: { resource: table, partition, tenant } }: NameClaim): void {
    const version = Number(resourceVersion)
    const known = this.#owners.get(key)
    if (known && known.version > version) return
    this.delete(key)
    this.#owners.set(key, { table, partition, version, ...(tenant && { tenant }) })
    const count = countKey(partition, table)
    this.#counts.set(count, (this.#counts.get(count) ?? 0) + 1)
  }

  /** `key`: name of the claim. */
  delete(key: string): void {
    const owner = this.#owners.get(key)
    if (!owner) return
    this.#owners.delete(key)
    const count = countKey(owner.partition, owner.table)
    const left = (this.#counts.get(count) ?? 0) - 1
    if (left > 0) this.#counts.set(count, left)
    else this.#counts.delete(count)
  }
}

/** Names of partitions and tables have no space. */
const countKey = (partition: string, table: string) => `${partition} ${table}`
