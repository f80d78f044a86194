/**
 * @module app/discovery: where the roles of this installation are reached. Each role writes its address into the ConfigMap
 * `oarlock-system/oarlock-endpoints`; commands, controllers and workers read it. A role without an entry is served on the address of the API
 * server, as in `oarlock up`. Every authenticated user may read the ConfigMap: it holds no secrets.
 */
import { systemNamespace } from '../../api/index.ts'
import { type Client, configMapResource } from '../../kubernetes/client/index.ts'
import { coerceError, type Log } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { httpsUrlError } from '../../kubernetes/util/index.ts'
import { endpointsName } from './endpoints-name.ts'

export { claimStores, readStoresId } from './claim-stores.ts'
export { endpointsName }

/** `caCertificate` is PEM; undefined for the certificate authorities of the system. */
export type Endpoint = { readonly url: string; readonly caCertificate: string | undefined }
export const endpointRoles = ['stores', 'join', 'queue'] as const
export type EndpointRole = (typeof endpointRoles)[number]
export type Endpoints = { readonly [role in EndpointRole]?: Endpoint }

/**
 * The published addresses. Empty if none is published, or the user cannot read them. Reading one that must not get credentials throws:
 * it affects only what needs this role.
 */
export async function readEndpoints(client: Client): Promise<Endpoints> {
  let data: Readonly<Record<string, string>> = {}
  try {
    data = (await findEndpoints(client))?.data ?? {}
  } catch (error) {
    if (!isReason(error, 'Forbidden')) throw error
  }
  const endpointOf = (role: EndpointRole): Endpoint | undefined => {
    const url = data[`${role}.url`]
    if (url === undefined) return undefined
    const problem = httpsUrlError(url)
    if (problem !== undefined) throw new Error(`${role}.url in ConfigMap ${systemNamespace}/${endpointsName} ${problem}`)
    return { url, caCertificate: data[`${role}.ca`] }
  }
  const endpoints: Endpoints = {}
  for (const role of endpointRoles)
    if (data[`${role}.url`] !== undefined) Object.defineProperty(endpoints, role, { enumerable: true, get: () => endpointOf(role) })
  return endpoints
}

const retryMs = 1_000
/** The entry may be deleted, or overwritten by a leader that was paused while it published. */
const refreshMs = 30_000
/** An API server that cannot be reached must not delay a shutdown. */
const withdrawTimeoutMs = 2_000

/** The publication of an address. `notReady` has the reason until it has succeeded. */
export type Publication = {
  notReady(): string[]
  /** Ends the attempts to publish; a published address stays. */
  stop(): void
  /** Also removes the published address, unless another process has replaced it. Never rejects. */
  withdraw(): Promise<void>
}

/**
 * Publishes the address of a role in the background, and retries until it succeeds: the namespace exists only when a controller has
 * installed Oarlock.
 */
export function keepPublishing(client: Client, role: EndpointRole, endpoint: Endpoint, log: Pick<Log, 'warn'>): Publication {
  let reason: string | undefined = 'its address is not published yet'
  let timer: NodeJS.Timeout | undefined
  const stopping = new AbortController()
  const attempt = async () => {
    try {
      await publishEndpoint(client, role, endpoint, stopping.signal)
      reason = undefined
      if (stopping.signal.aborted) return
      timer = setTimeout(() => {
        lastAttempt = attempt()
      }, refreshMs).unref()
    } catch (thrown) {
      if (stopping.signal.aborted) return
      const text = `its address is not published: ${coerceError(thrown).message}`
      if (reason !== text) log.warn({ err: coerceError(thrown), role }, 'failed to publish the address, retrying every second')
      reason = text
      timer = setTimeout(() => {
        lastAttempt = attempt()
      }, retryMs)
    }
  }
  let lastAttempt = attempt()
  const stop = () => {
    stopping.abort()
    clearTimeout(timer)
  }
  return {
    notReady: () => (reason === undefined ? [] : [reason]),
    stop,
    withdraw: async () => {
      stop()
      await lastAttempt
      try {
        await withdrawEndpoint(client, role, endpoint.url, AbortSignal.timeout(withdrawTimeoutMs))
      } catch (thrown) {
        log.warn({ err: coerceError(thrown), role }, 'failed to remove the published address')
      }
    },
  }
}

/** Publishes the address of a role, in fields that no other role writes. */
export async function publishEndpoint(
  client: Client,
  role: EndpointRole,
  { url, caCertificate }: Endpoint,
  signal?: AbortSignal,
): Promise<void> {
  const data = { [`${role}.url`]: url, ...(caCertificate !== undefined && { [`${role}.ca`]: caCertificate }) }
  await client
    .resource(configMapResource)
    .apply({ metadata: { name: endpointsName, namespace: systemNamespace }, data }, { force: true, fieldManager: managerOf(role), signal })
}

/** Removes the address of a role, unless it is not `url` any more. Retries when another role writes its address at the same time. */
async function withdrawEndpoint(client: Client, role: EndpointRole, url: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const found = await findEndpoints(client, signal)
    if (found?.data?.[`${role}.url`] !== url) return
    try {
      return await applyNothing(client, role, { resourceVersion: found.metadata.resourceVersion, signal })
    } catch (error) {
      if (!isReason(error, 'Conflict')) throw error
    }
  }
}

/** Removes the addresses of all roles, for a process that has them all: those of processes that ran apart earlier lead nowhere. */
export async function withdrawEndpoints(client: Client): Promise<void> {
  const { data = {} } = (await findEndpoints(client)) ?? {}
  for (const role of endpointRoles) if (data[`${role}.url`] !== undefined) await applyNothing(client, role)
}

const findEndpoints = async (client: Client, signal?: AbortSignal) =>
  await client.resource(configMapResource).getOrUndefined(endpointsName, { namespace: systemNamespace, signal })

/** Removes the fields of a role: server-side apply removes what its manager applied before and does not apply any more. */
async function applyNothing(
  client: Client,
  role: EndpointRole,
  { resourceVersion, signal }: { resourceVersion?: string | undefined; signal?: AbortSignal } = {},
): Promise<void> {
  const metadata = { name: endpointsName, namespace: systemNamespace, ...(resourceVersion !== undefined && { resourceVersion }) }
  await client.resource(configMapResource).apply({ metadata }, { force: true, fieldManager: managerOf(role), signal })
}

const managerOf = (role: EndpointRole) => `oarlock-${role}`
