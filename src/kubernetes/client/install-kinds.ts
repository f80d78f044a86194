import { type CustomResource, isReason } from '../object/index.ts'
import type { Client } from './client.ts'
import { type Clock, systemClock } from './clock.ts'
import { crdResource } from './core-kinds.ts'

export type InstallOptions = {
  /** How long to wait until the server serves a kind; default 30,000. */
  timeoutMs?: number | undefined
  signal?: AbortSignal | undefined
  /** For tests. */
  clock?: Clock | undefined
}

const firstWaitMs = 2
const longestWaitMs = 250

/**
 * Applies the CRDs of declared kinds (server-side, taking over fields of others) and waits until the server serves them:
 * for operators that bring their kinds along, and for tests. Needs the right to patch and get customresourcedefinitions.
 * @throws {Error} naming the kind that is not served in time and what its CRD says about it.
 */
export async function installKinds(
  client: Client,
  kinds: readonly CustomResource<unknown>[],
  { timeoutMs = 30_000, signal, clock = systemClock }: InstallOptions = {},
): Promise<void> {
  const crds = client.resource(crdResource)
  await Promise.all(kinds.map(kind => crds.apply(kind.toCrd(), { force: true, signal })))
  const untilMs = clock.nowMs() + timeoutMs
  await Promise.all(
    kinds.map(async kind => {
      for (let waitMs = firstWaitMs; !(await isServed(client, kind, signal)); waitMs = Math.min(waitMs * 2, longestWaitMs)) {
        if (clock.nowMs() >= untilMs) throw await notServed(client, kind, timeoutMs)
        await clock.sleep(waitMs, signal)
      }
    }),
  )
}

async function isServed(client: Client, kind: CustomResource<unknown>, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await client.resource(kind).list({ limit: 1, signal })
    return true
  } catch (error) {
    // Kubernetes answers 404 before it knows the kind, and 503 or 429 while it makes ready to serve it.
    if (isReason(error, 'NotFound', 'ServiceUnavailable', 'TooManyRequests')) return false
    // Who may install a kind need not be one who may read it: then its CRD has to be enough.
    if (isReason(error, 'Forbidden')) return true
    throw error
  }
}

async function notServed(client: Client, { plural, group, apiVersion }: CustomResource<unknown>, timeoutMs: number): Promise<Error> {
  const crd = await client.resource(crdResource).getOrUndefined(`${plural}.${group}`)
  const told = (crd?.status?.conditions ?? []).map(({ type, status, message = '' }) => `${type} is ${status}${message && `: ${message}`}`)
  const why = told.join('; ') || 'its CRD says nothing about it'
  return new Error(`${plural} of ${apiVersion} are not served after ${timeoutMs} ms: ${why}`)
}
