import { type Client, leaseResource, listWatch } from '../../kubernetes/client/index.ts'
import { type Controller, controller } from '../../kubernetes/controller/index.ts'
import { isReason, type Resource } from '../../kubernetes/object/index.ts'
import { decideClaim } from './decide-claim.ts'

/** The spec of a NameClaim (`gateway/kinds/kinds.ts`). */
type Claim = { spec: { resource: string; name: string; partition: string; tenant?: string } }

export type ClaimsOptions = {
  /** Name of this partition. */
  readonly partition: string
  /** Of this partition. */
  readonly local: Client
  readonly claims: Resource<Claim>
  /** The kinds whose names are claimed, by plural and group, such as `namespaces` and `workers.oarlock.dev`. */
  readonly kinds: ReadonlyMap<string, Resource<unknown>>
  /** The label of a namespace with its Tenant, which its claim has too. Default: claims are not updated. */
  readonly tenantLabel?: string | undefined
  /** How long a claim stays without its object. Default 60,000; less than that is not safe, and for tests only. */
  readonly removeAfterMs?: number | undefined
  /** Claims up to this version may be of objects that this data directory has never had, and are kept. Default: none. */
  readonly keepUpTo?: (() => number) | undefined
  /** Asked before each removal whether this data directory is still that of the partition; if not, the claim stays. Default: it is. */
  readonly isOwn?: ((signal: AbortSignal) => Promise<boolean>) | undefined
  /** Ends the watches of local objects. */
  readonly signal: AbortSignal
  readonly onError: (error: unknown, what: string) => void
}

/** The version of the partition rises only with writes. */
const clockLease = { namespace: 'kube-system', name: 'oarlock-claims' }
const unknownRetryMs = 1_000

/**
 * A controller, for a manager whose client is that of home, that removes the claims of this partition whose object is gone: deleted, or never created because
 * its gateway has ended. The claim of a namespace follows its Tenant. While home does not answer nothing is removed.
 */
export function claims({
  partition,
  local,
  claims,
  kinds,
  tenantLabel,
  removeAfterMs,
  keepUpTo = () => 0,
  isOwn = async () => true,
  signal,
  onError,
}: ClaimsOptions): Controller {
  // Names of the objects of each table, with the Tenant of a namespace.
  const present = new Map<string, Map<string, string | undefined>>()
  const tenantOf = (table: string, labels: Readonly<Record<string, string>> | undefined) =>
    table === 'namespaces' && tenantLabel !== undefined ? labels?.[tenantLabel] : undefined
  const removing: Controller = controller<Claim>({
    name: 'name-claims',
    for: claims,
    backoff: { baseDelayMs: 100, maxDelayMs: 30_000 },
    reconcile: async ({ name: key, object, client, signal: reconcileSignal }) => {
      const { resource: table, name, partition: owner } = object?.spec ?? {}
      const kind = table === undefined ? undefined : kinds.get(table)
      if (!object || owner !== partition || !kind || name === undefined) return
      const names = present.get(String(table))
      if (!names) return { requeueAfterMs: unknownRetryMs }
      const { uid, resourceVersion } = object.metadata
      const tenant = names.get(name)
      if (tenant !== undefined && tenant !== object.spec.tenant) {
        await client.resource(claims).patch(key, { metadata: { uid }, spec: { tenant } }, { type: 'merge', signal: reconcileSignal })
        return
      }
      const state = { version: Number(resourceVersion), isHere: names.has(name), keepUpTo: keepUpTo(), removeAfterMs }
      let decision = decideClaim({ ...state, nowMs: Date.now() })
      if (decision.kind === 'read') {
        const { missingAt } = await readMissing(local, kind, name, reconcileSignal)
        decision = decideClaim({ ...state, isHere: missingAt === undefined, nowMs: Date.now(), missingAt })
      }
      if (decision.kind === 'wait') return { requeueAfterMs: decision.ms }
      // A server that was paused or cut off may have been replaced, and lacks what its successor has got. A claim of this version is older than this answer.
      if (decision.kind !== 'remove' || !(await isOwn(reconcileSignal))) return
      const preconditions = { uid, resourceVersion }
      await client
        .resource(claims)
        .delete(key, { preconditions, signal: reconcileSignal })
        .catch(error => {
          // Renewed or removed meanwhile: an event follows.
          if (!isReason(error, 'NotFound', 'Conflict')) throw error
        })
    },
  })
  for (const [table, kind] of kinds)
    void listWatch(local, kind, {
      signal,
      onReplace(items) {
        const before = present.get(table)
        const now = new Map(items.map(({ metadata: { name, labels } }) => [name, tenantOf(table, labels)]))
        present.set(table, now)
        for (const [name, tenant] of before ?? []) if (!now.has(name) || now.get(name) !== tenant) removing.enqueue(`${name}.${table}`)
      },
      onEvent({ type, object: { metadata } }) {
        if (type === 'BOOKMARK') return
        const { name, labels } = metadata
        const names = present.get(table)
        if (type === 'DELETED') {
          if (names?.delete(name)) removing.enqueue(`${name}.${table}`)
          return
        }
        const tenant = tenantOf(table, labels)
        const isChanged = names?.has(name) && names.get(name) !== tenant
        names?.set(name, tenant)
        if (isChanged) removing.enqueue(`${name}.${table}`)
      },
      onError: error => onError(error, `${table} of this partition cannot be read`),
    }).catch(error => {
      if (!signal.aborted) onError(error, `${table} of this partition are no longer read`)
    })
  return removing
}

/** The version at which this partition, after a write of now, does not have the object; undefined if it has it. */
async function readMissing(local: Client, kind: Resource<unknown>, name: string, signal: AbortSignal): Promise<{ missingAt?: number }> {
  const { namespace, name: lease } = clockLease
  const renewTime = new Date().toISOString().replace('Z', '000Z')
  await local
    .resource(leaseResource)
    .apply({ metadata: { namespace, name: lease }, spec: { holderIdentity: 'oarlock-claims', renewTime } } as never, {
      force: true,
      signal,
    })
  const { items, metadata } = await local.resource(kind).list({ fieldSelector: `metadata.name=${name}`, signal })
  return items.length > 0 ? {} : { missingAt: Number(metadata.resourceVersion) }
}
