import { randomBytes } from 'node:crypto'
import type { Client } from '../../kubernetes/client/index.ts'
import { type Entry, findEntry, updateEntry } from './endpoint-entry.ts'

/** Its own manager: the claim stays published while the stores are stopped, when their address may be withdrawn. */
const fieldManager = 'oarlock-stores-id'

/**
 * The generation of the states of an installation. Each use of their directory raises it, in the directory and in the claim, so a
 * directory with a lower one was copied, or backed up, before its original was used again. `nonce` tells two copies apart that raised the
 * same generation. `time` (RFC 3339) is informational.
 */
export type Generation = { readonly number: number; readonly nonce: string; readonly time: string }

/** The generation in the directory of the stores. A write is durable when it returns. */
export type GenerationStore = { read(): Generation; write(generation: Generation): void }

export type ClaimingStores = { readonly id: string; readonly generation: GenerationStore }

/** What is known about the stores of an installation; without `id`, none have claimed it. */
export type StoresClaim = {
  readonly id?: string | undefined
  readonly generation?: Generation | undefined
  /** The address of the process that serves them, or served them last. */
  readonly url?: string | undefined
}

export type ClaimRefusal =
  /** The stores of the installation are others. */
  | { readonly kind: 'other'; readonly id: string }
  /** The directory is a copy of that of the installation, which was used since. */
  | { readonly kind: 'older'; readonly own: Generation; readonly claimed: Generation }

export async function readStoresClaim(client: Client, signal?: AbortSignal): Promise<StoresClaim> {
  return claimOf((await findEntry(client, 'stores', signal))?.data ?? {})
}

/** Why the stores cannot claim the installation; undefined if they can. */
export function claimRefusal({ id, generation }: ClaimingStores, claim: StoresClaim): ClaimRefusal | undefined {
  if (claim.id === undefined) return undefined
  if (claim.id !== id) return { kind: 'other', id: claim.id }
  const own = generation.read()
  const claimed = claim.generation
  if (!claimed || own.number > claimed.number || (own.number === claimed.number && own.nonce === claimed.nonce)) return undefined
  return { kind: 'older', own, claimed }
}

/**
 * Makes these stores those of the installation, unless others are, and raises their generation: engines that start from the empty or
 * older states of other stores create everything again. Atomic, so that of two stores that start at the same time one is refused.
 *
 * The directory is written before the claim. So a process that ends between the two leaves a directory that is ahead of the claim, which
 * is accepted, as after a restore of the API server; no crash leaves one that is behind it. Such a directory claims its own generation
 * first: if it counted on, it could overtake a copy that has raised the same generation.
 */
export async function claimStores(
  client: Client,
  stores: ClaimingStores,
  { replace = false, signal }: { replace?: boolean | undefined; signal?: AbortSignal | undefined } = {},
): Promise<ClaimRefusal | undefined> {
  const { id, generation } = stores
  let refusal: ClaimRefusal | undefined
  let isRaised = false
  const decide = (entry: Entry): Entry | undefined => {
    const claim = claimOf(entry)
    const found = claimRefusal(stores, claim)
    refusal = replace ? undefined : found
    if (refusal) return undefined
    const claimed = claim.generation?.number ?? 0
    let next = generation.read()
    if (found || next.number <= claimed) {
      next = { number: Math.max(next.number, claimed) + 1, nonce: randomBytes(4).toString('hex'), time: new Date().toISOString() }
      generation.write(next)
      isRaised = true
    }
    return { id, generation: `${next.number}-${next.nonce}`, generationTime: next.time }
  }
  while (!isRaised && !refusal) await updateEntry(client, 'stores', { fieldManager, signal, decide })
  return refusal
}

function claimOf({ id, url, generation, generationTime = '' }: Entry): StoresClaim {
  if (generation === undefined) return { id, url }
  const [, number = '', nonce = ''] = /^(\d{1,15})-([0-9a-f]*)$/.exec(generation) ?? []
  if (number === '') throw new Error(`generation in the ConfigMap of the stores must be NUMBER-NONCE, got ${JSON.stringify(generation)}`)
  return { id, url, generation: { number: Number(number), nonce, time: generationTime } }
}
