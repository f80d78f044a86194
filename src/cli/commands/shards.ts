import { stackResource, stackShardsName, systemNamespace } from '../../api/index.ts'
import { type Client, leaseResource } from '../../kubernetes/client/index.ts'
import {
  bucketCount,
  bucketLabel,
  bucketOf,
  bucketRangesOf,
  labeledBucketOf,
  readShards,
  ringLabel,
  type ShardMember,
  type ShardView,
} from '../../kubernetes/controller/index.ts'
import { formatDuration, isReason, type KubeObject, parseApiVersion, type Resource } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { countOf } from '../count-of.ts'
import { exitCodes } from '../exit-codes.ts'
import { discoverTypes, findTypes, parseTarget } from '../find-types.ts'
import { serialize } from '../output/print-objects.ts'
import { renderTable } from '../output/table.ts'
import { getStack } from '../targets.ts'
import { print } from '../terminal.ts'

export type ShardsOptions = AccessOptions & { ring: string; ringNamespace: string; output?: 'json' | 'yaml' | 'wide' }

/** The object whose owner is asked for. Only the UID is known of one that was given by its UID. */
export type KeyObject = {
  kind?: string
  namespace?: string | undefined
  name?: string
  uid: string
  bucket: number
  /** `label`: an owned object. `owner`: one whose owner is a root for certain. `uid`: right only if the object is the root of a controller of the ring, as a `root` is for certain. */
  bucketFrom: 'root' | 'label' | 'owner' | 'uid'
  /** What controls an object without a bucket label, such as `Boat/b1`. */
  controlledBy?: string
}

/** `oarlock shards [KEY]`: the ring of sharded controllers, its members, and the owner of a key. */
export async function shards(key: string | undefined, options: ShardsOptions): Promise<void> {
  await withClient(options, async client => {
    const object = key === undefined ? undefined : await findKey(client, key, options)
    const view = await readRing(client, options)
    const { output, ring, ringNamespace } = options
    const nowMs = Date.now()
    if (output === 'json' || output === 'yaml')
      return print(await serialize(shardsReport(view, { ring, ringNamespace, nowMs, object }), output))
    const lines = shardLines(view, { ring, ringNamespace, isWide: output === 'wide', nowMs })
    for (const line of [...lines, ...(object ? ['', ownerLine(view, object, nowMs)] : [])]) print(line)
  })
}

/** @throws {CliError} notFound, if there is no such ring. */
async function readRing(client: Client, { ring, ringNamespace }: ShardsOptions): Promise<ShardView> {
  const view = await readShards(client, { name: ring, namespace: ringNamespace })
  if (view) return view
  const isOwn = ring === stackShardsName && ringNamespace === systemNamespace
  const others = await visibleRings(client)
  throw new CliError(`no ring ${JSON.stringify(ring)} in namespace ${ringNamespace}: no controllers share keys under this name`, {
    exitCode: exitCodes.notFound,
    details: others.length > 0 ? [`existing rings: ${others.join(', ')}`] : [],
    hint: isOwn
      ? 'start several "oarlock controller --shards N"; without --shards one process leads: "kubectl get lease -n oarlock-system oarlock-controller"'
      : "--ring and --ring-namespace are `shards.name` and `shards.namespace` of the operator's Manager",
  })
}

/** `--ring NAME --ring-namespace NAMESPACE` of each ring, at most ten; none without the right to list Leases in all namespaces. */
async function visibleRings(client: Client): Promise<string[]> {
  try {
    const { items } = await client.resource(leaseResource).listAll({ labelSelector: ringLabel })
    const rings = items.map(({ metadata }) => `--ring ${metadata.labels?.[ringLabel]} --ring-namespace ${metadata.namespace}`)
    return [...new Set(rings)].sort().slice(0, 10)
  } catch (error) {
    if (isReason(error, 'Forbidden')) return []
    throw error
  }
}

const uidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** @throws {CliError} if the object does not exist, or its type is unknown. */
async function findKey(client: Client, key: string, options: ShardsOptions): Promise<KeyObject> {
  if (uidPattern.test(key)) return { uid: key.toLowerCase(), bucket: bucketOf(key.toLowerCase()), bucketFrom: 'uid' }
  const { type, name } = parseTarget(key, 'stack')
  if (type === '' || name === '' || name.includes('/'))
    throw usageError(`invalid key ${JSON.stringify(key)}`, 'use NAMESPACE/NAME of a Stack, TYPE/NAME with -n NAMESPACE, or a UID')
  const namespace = namespaceOf(client, options)
  if (['stack', 'stacks', 'stk'].includes(type.toLowerCase()))
    return described(stackResource, await getStack(client, name, namespace), options)
  const resource = await findType(client, type)
  if (!resource) {
    // Without the CRD of Stacks there are none.
    const stack = await getStack(client, name, type).catch(error => {
      if (isReason(error, 'NotFound') || (error instanceof CliError && options.ring !== stackShardsName)) return undefined
      throw error
    })
    if (stack) return described(stackResource, stack, options)
    throw new CliError(`${key} names a Stack, and there is no stack "${name}" in namespace ${type}`, {
      exitCode: exitCodes.notFound,
      hint: `for an object of another kind: "oarlock shards TYPE/${name} -n ${type}"`,
    })
  }
  const found = await client.resource(resource).getOrUndefined(name, resource.scope === 'Namespaced' ? { namespace } : {})
  if (found) return described(resource, found, options)
  const where = resource.scope === 'Namespaced' ? ` in namespace ${namespace}` : ''
  // A namespace can have the name of a type.
  const stack = resource.plural === stackResource.plural ? undefined : await stackIn(client, type, name)
  if (stack) return described(stackResource, stack, options)
  throw new CliError(`${resource.kind.toLowerCase()} "${name}" not found${where}`, {
    exitCode: exitCodes.notFound,
    hint: '-n NAMESPACE selects another namespace',
  })
}

/** The kind called `type`; undefined if the server has none: then it is a namespace. */
async function findType(client: Client, type: string): Promise<Resource | undefined> {
  try {
    return findTypes(type, await discoverTypes(client))[0]
  } catch (error) {
    if (error instanceof CliError && error.exitCode === exitCodes.notFound) return undefined
    throw error
  }
}

async function stackIn(client: Client, namespace: string, name: string) {
  try {
    return await client.resource(stackResource).getOrUndefined(name, { namespace })
  } catch (error) {
    if (isReason(error, 'Forbidden')) return undefined
    throw error
  }
}

function described(
  { group, kind }: Resource,
  { metadata }: Pick<KubeObject, 'metadata'>,
  { ring }: Pick<ShardsOptions, 'ring'>,
): KeyObject {
  const { name, namespace, uid, labels, ownerReferences } = metadata
  const object = { kind, ...(namespace !== undefined && { namespace }), name, uid }
  // A Stack is always a root, even if another operator owns it.
  const isStack = group === stackResource.group && kind === stackResource.kind
  if (isStack && ring === stackShardsName) return { ...object, bucket: bucketOf(uid), bucketFrom: 'root' }
  const labeled = isStack ? undefined : labeledBucketOf(labels)
  if (labeled !== undefined) return { ...object, bucket: labeled, bucketFrom: 'label' }
  const owner = ownerReferences?.find(({ controller }) => controller)
  // Of Runs the caches have all: they need no label.
  if (ring === stackShardsName && owner?.kind === stackResource.kind && parseApiVersion(owner.apiVersion).group === stackResource.group)
    return { ...object, bucket: bucketOf(owner.uid), bucketFrom: 'owner' }
  return { ...object, bucket: bucketOf(uid), bucketFrom: 'uid', ...(owner && { controlledBy: `${owner.kind}/${owner.name}` }) }
}

type ReportOptions = { ring: string; ringNamespace: string; nowMs: number; object?: KeyObject | undefined }

/** What `-o json` prints. Pure. */
export function shardsReport(view: ShardView, { ring, ringNamespace, nowMs, object }: ReportOptions) {
  const owner = object && view.ownerOf(object.bucket)
  return {
    ring,
    namespace: ringNamespace,
    version: view.version,
    fence: view.fence,
    buckets: bucketCount,
    members: view.members.map(member => ({
      slot: member.slot,
      session: member.session ?? null,
      state: stateOf(member, nowMs),
      isLeaving: member.isLeaving,
      renewTime: member.renewTime ?? null,
      buckets: member.buckets,
      gaining: member.gaining,
      losing: member.losing,
    })),
    ...(object && {
      key: {
        ...object,
        owner: owner ? { slot: owner.slot, session: owner.session ?? null } : null,
      },
    }),
  }
}

/** The table of members. Pure. */
export function shardLines(
  view: ShardView,
  { ring, ringNamespace, isWide, nowMs }: { ring: string; ringNamespace: string; isWide: boolean; nowMs: number },
): string[] {
  const { version, fence, members } = view
  const live = members.filter(member => isLive(member, nowMs))
  const held = live.reduce((sum, { buckets }) => sum + buckets.length, 0)
  const moving = members.reduce((sum, { gaining }) => sum + gaining.length, 0)
  const headers = ['SLOT', 'MEMBER', 'STATE', 'RENEWED', 'BUCKETS', 'GAINING', 'LOSING', ...(isWide ? ['RANGES'] : [])]
  const rows = members.map(member => [
    String(member.slot),
    member.session ?? '<none>',
    stateOf(member, nowMs),
    renewedAgo(member, nowMs),
    ...[member.buckets, member.gaining, member.losing].map(buckets => String(buckets.length)),
    ...(isWide ? [rangesOf(member.buckets)] : []),
  ])
  return [
    `ring ${ring} in ${ringNamespace}: version ${version}, fence ${fence}, ${countOf(live.length, 'member')}, ${held} of ${bucketCount} buckets held, ${moving} moving`,
    ...(rows.length > 0 ? renderTable(headers, rows) : []),
  ]
}

/** Who works on an object. Pure. */
export function ownerLine(view: ShardView, key: KeyObject, nowMs: number): string {
  const { kind, namespace, name, uid, bucket, bucketFrom, controlledBy } = key
  const member = view.ownerOf(bucket)
  const object =
    kind === undefined ? `uid ${uid}` : `${kind.toLowerCase()} ${namespace === undefined ? '' : `${namespace}/`}${name} (uid ${uid})`
  const next = view.members.find(({ slot, gaining }) => slot !== member?.slot && gaining.includes(bucket))
  const move = next ? `; it moves to ${next.session ?? 'the next member'} in slot ${next.slot}` : ''
  const place = `in bucket ${bucket}, ${holderText(member, nowMs)}${move}`
  if (controlledBy !== undefined)
    return `${object} is controlled by ${controlledBy} and has no label ${bucketLabel}: a sharded controller that owns it does not see it; if it is itself the root of a controller of this ring, it is ${place}`
  return bucketFrom === 'uid' ? `${object}, if it is the root of a controller of this ring, is ${place}` : `${object} is ${place}`
}

function holderText(member: ShardMember | undefined, nowMs: number): string {
  if (!member) return 'held by no member at this moment'
  const { slot, session } = member
  if (session === undefined) return `assigned to the vacant slot ${slot}: no process works on it`
  const state = stateOf(member, nowMs)
  if (state !== 'Late' && state !== 'Expired') return `held by ${session} in slot ${slot}`
  return `assigned to ${session} in slot ${slot}, which renewed its Lease ${renewedAgo(member, nowMs)}: no process works on it`
}

/** A member stops its work at its renew deadline, which is not in its Lease: by default two thirds of the duration. */
const lateAfter = 2 / 3

/** By the wall clocks of the member and of this machine: for people only. */
function stateOf(member: ShardMember, nowMs: number): 'Vacant' | 'Expired' | 'Late' | 'Leaving' | 'Moving' | 'Active' {
  const { session, leaseDurationMs, isLeaving, gaining, losing } = member
  if (session === undefined) return 'Vacant'
  const ageMs = renewalAgeMs(member, nowMs)
  if (ageMs !== undefined && leaseDurationMs !== undefined) {
    if (ageMs > leaseDurationMs) return 'Expired'
    if (ageMs > leaseDurationMs * lateAfter) return 'Late'
  }
  if (isLeaving) return 'Leaving'
  return gaining.length + losing.length > 0 ? 'Moving' : 'Active'
}

/** A member that is late may renew its Lease in time. */
function isLive(member: ShardMember, nowMs: number): boolean {
  const state = stateOf(member, nowMs)
  return state !== 'Vacant' && state !== 'Expired'
}

function renewalAgeMs({ renewTime }: ShardMember, nowMs: number): number | undefined {
  const ms = nowMs - Date.parse(renewTime ?? '')
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

function renewedAgo(member: ShardMember, nowMs: number): string {
  const ageMs = renewalAgeMs(member, nowMs)
  return member.session === undefined || ageMs === undefined ? '-' : `${formatDuration(Math.round(ageMs / 1_000) * 1_000)} ago`
}

/** `0-12,14`: adjacent buckets as a range. */
const rangesOf = (buckets: readonly number[]): string =>
  bucketRangesOf(buckets)
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(',') || '-'
