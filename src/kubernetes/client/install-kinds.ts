import { type CustomResource, isReason } from '../object/index.ts'
import { exponentialDelayMs } from '../util/backoff.ts'
import type { Client } from './client.ts'
import { type Clock, systemClock } from './clock.ts'
import { crdResource } from './core-kinds.ts'

export type InstallOptions = {
  /** How long to wait until the server serves the kinds; default 30,000. */
  timeoutMs?: number | undefined
  signal?: AbortSignal | undefined
  /** For tests. */
  clock?: Clock | undefined
}

const pollInterval = { minMs: 2, maxMs: 250 }

/**
 * Applies the CRDs of declared kinds (server-side, taking over fields of other managers) and waits until the server serves
 * them: for operators that install their own kinds, and for tests. Requires patch and get on customresourcedefinitions.
 * @throws {Error} naming the kind that is not served before the timeout, with the conditions of its CRD.
 */
export async function installKinds(
  client: Client,
  kinds: readonly CustomResource<unknown>[],
  { timeoutMs = 30_000, signal, clock = systemClock }: InstallOptions = {},
): Promise<void> {
  const crds = client.resource(crdResource)
  await Promise.all(kinds.map(kind => crds.apply(kind.toCrd(), { force: true, signal })))
  const deadlineMs = clock.nowMs() + timeoutMs
  await Promise.all(
    kinds.map(async kind => {
      for (let polls = 1; !(await isServed(client, kind, signal)); polls++) {
        if (clock.nowMs() >= deadlineMs) throw await notServedError(client, kind, timeoutMs)
        await clock.sleep(exponentialDelayMs(polls, pollInterval), signal)
      }
    }),
  )
}

async function isServed(client: Client, kind: CustomResource<unknown>, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await client.resource(kind).list({ limit: 1, signal })
    return true
  } catch (error) {
    // Kubernetes returns 404 before it knows the kind, and 503 or 429 while it prepares to serve it.
    if (isReason(error, 'NotFound', 'ServiceUnavailable', 'TooManyRequests')) return false
    // A client may be allowed to install a kind but not to read it: then the CRD has to suffice.
    if (isReason(error, 'Forbidden')) return true
    throw error
  }
}

async function notServedError(client: Client, { plural, group, apiVersion }: CustomResource<unknown>, timeoutMs: number): Promise<Error> {
  const crd = await client.resource(crdResource).getOrUndefined(`${plural}.${group}`)
  const conditions = (crd?.status?.conditions ?? []).map(
    ({ type, status, message = '' }) => `${type} is ${status}${message && `: ${message}`}`,
  )
  return new Error(
    `${plural} of ${apiVersion} are not served after ${timeoutMs} ms: ${conditions.join('; ') || 'the CRD has no conditions'}`,
  )
}
