import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../kubernetes/client/index.ts'
import { readShards, type ShardOptions } from '../../kubernetes/controller/index.ts'

/**
 * The members of a ring that renew their Leases within `waitMs`, such as `pod-1_3f2a90c1.1`: whatever the clocks of their hosts show. Resolves immediately
 * if no slot is claimed.
 */
export async function liveMembers(client: Client, ring: Pick<ShardOptions, 'name' | 'namespace'>, waitMs: number): Promise<string[]> {
  const before = new Map<string, string | undefined>()
  for (const { session, renewTime } of (await readShards(client, ring))?.members ?? []) if (session) before.set(session, renewTime)
  if (before.size === 0) return []
  await delay(waitMs)
  const live: string[] = []
  for (const { session, renewTime } of (await readShards(client, ring))?.members ?? [])
    if (session && before.get(session) !== renewTime) live.push(session)
  return live
}
