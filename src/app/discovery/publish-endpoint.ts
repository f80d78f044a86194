import { systemNamespace } from '../../api/index.ts'
import { type Client, configMapResource, listWatch } from '../../kubernetes/client/index.ts'
import { coerceError, type Log } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'
import { fullReason, type HealthReason } from '../../kubernetes/util/index.ts'
import { type EndpointRole, type Entry, endpointName, endpointRoles, findEntry, updateEntry } from './endpoint-entry.ts'
import type { Endpoint } from './read-endpoint.ts'

const retryMs = 1_000
/** An API server that cannot be reached must not delay a shutdown. */
const withdrawTimeoutMs = 2_000

/** The publication of an address. `notReady` has a reason while the address is not published. */
export type Publication = {
  notReady(): HealthReason[]
  /** Publishes another address or certificate authority of the same process. */
  replace(endpoint: Endpoint): void
  /** Ends the attempts to publish; a published address stays. */
  stop(): void
  /** Also removes the published address, unless another process has replaced it. Never rejects. */
  withdraw(): Promise<void>
}

export type PublicationOptions = {
  client: Client
  role: EndpointRole
  endpoint: Endpoint
  log: Pick<Log, 'warn'>
  /** Least time between writes of an address that others overwrite; default 30,000. Two processes of a role would replace each other all the time. */
  republishMs?: number | undefined
  /** False while another process may serve instead, whose address must not be replaced. Asked immediately before each write; default true. */
  mayPublish?: (() => boolean) | undefined
}

/**
 * Publishes the address of a role in the background, and retries until it succeeds: the namespace exists only when a controller has
 * installed Oarlock. Then it watches the entry, and publishes again what was deleted or overwritten.
 */
export function keepPublishing(options: PublicationOptions): Publication {
  const { client, role, log, republishMs = 30_000, mayPublish = () => true } = options
  const stopping = new AbortController()
  const { signal } = stopping
  let { endpoint } = options
  let expected = entryOf(endpoint)
  let reason: HealthReason | undefined = 'its address is not published yet'
  let rejection: HealthReason | undefined
  let publishedAtMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isWatching = false

  const attempt = async () => {
    try {
      const decide = () => {
        if (!mayPublish()) throw new Error('another process may serve instead of this one')
        return expected
      }
      await updateEntry(client, role, { fieldManager: managerOf(role), signal, decide })
      publishedAtMs = performance.now()
      reason = undefined
      if (!isWatching) watch()
    } catch (thrown) {
      if (signal.aborted) return
      const failure = { reason: 'its address is not published', detail: coerceError(thrown) }
      if (!isSame(reason, failure)) log.warn({ err: failure.detail, role }, 'failed to publish the address, retrying every second')
      reason = failure
      publishIn(retryMs)
    }
  }
  let lastAttempt = attempt()
  const publishIn = (delayMs: number) => {
    clearTimeout(timer)
    if (signal.aborted) return
    timer = setTimeout(() => {
      lastAttempt = attempt()
    }, delayMs)
  }
  const observe = (entry: Entry | undefined) => {
    rejection = undefined
    if (hasAll(entry, expected)) {
      reason = undefined
      clearTimeout(timer)
      return
    }
    const change =
      entry?.url === undefined
        ? 'its published address was deleted'
        : { reason: 'its published address was replaced by another one', detail: entry.url }
    if (!isSame(reason, change)) log.warn({ role }, fullReason(change))
    reason = change
    publishIn(Math.max(0, publishedAtMs + republishMs - performance.now()))
  }
  const watch = () => {
    isWatching = true
    void listWatch(client, configMapResource, {
      namespace: systemNamespace,
      fieldSelector: `metadata.name=${endpointName(role)}`,
      signal,
      onReplace: items => observe(items[0]?.data),
      onEvent: ({ type, object }) => {
        if (type !== 'BOOKMARK') observe(type === 'DELETED' ? undefined : object.data)
      },
      onWatching: () => {
        rejection = undefined
      },
      onError: (error, retryInMs) => {
        // An API server that does not answer is no reason: others reach this role without it.
        if (isReason(error, 'Unauthorized', 'Forbidden')) rejection = { reason: 'its published address cannot be watched', detail: error }
        log.warn({ err: coerceError(error), role, retryInMs }, 'failed to watch the published address')
      },
    })
  }
  const stop = () => {
    stopping.abort()
    clearTimeout(timer)
  }
  return {
    notReady: () => [reason, rejection].filter(text => text !== undefined),
    replace: next => {
      endpoint = next
      expected = entryOf(next)
      void lastAttempt.then(() => publishIn(0))
    },
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

const isSame = (a: HealthReason | undefined, b: HealthReason) => a !== undefined && fullReason(a) === fullReason(b)

/** Publishes the address of a role. */
export async function publishEndpoint(client: Client, role: EndpointRole, endpoint: Endpoint): Promise<void> {
  await updateEntry(client, role, { fieldManager: managerOf(role), decide: () => entryOf(endpoint) })
}

/** Removes the addresses of all roles, for a process that has them all: those of processes that ran apart earlier lead nowhere. */
export async function withdrawEndpoints(client: Client): Promise<void> {
  for (const role of endpointRoles) if (await findEntry(client, role)) await withdrawEndpoint(client, role)
}

/** Removes the address of a role; with `url`, only that one. */
async function withdrawEndpoint(client: Client, role: EndpointRole, url?: string, signal?: AbortSignal): Promise<void> {
  const isRemoved = (entry: Entry) => entry.url === undefined || (url !== undefined && entry.url !== url)
  await updateEntry(client, role, { fieldManager: managerOf(role), signal, decide: entry => (isRemoved(entry) ? undefined : {}) })
}

const entryOf = ({ url, caCertificate }: Endpoint): Entry => ({ url, ...(caCertificate !== undefined && { 'ca.crt': caCertificate }) })

const hasAll = (entry: Entry | undefined, { url, 'ca.crt': ca }: Entry) => entry?.url === url && entry?.['ca.crt'] === ca

const managerOf = (role: EndpointRole) => `oarlock-${role}`
