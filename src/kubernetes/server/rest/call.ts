import { badRequest, type KubeObject, StatusError, type StrictJson } from '../../object/index.ts'
import type { AdmissionPlugin, AdmissionRequest, DeletionPlugin, User } from '../auth/index.ts'
import type { Quotas } from '../quota/index.ts'
import { forbiddenError, type Kind, type Registry, type Verb } from '../registry/index.ts'
import type { Store, StoredEntry, Table } from '../storage/index.ts'
import { stringifyAsciiJson } from '../storage/index.ts'
import type { Revalidate, WatchManager } from '../watch/index.ts'
import { finish, type Reply, type Representation, renderEntry, send } from '../wire/index.ts'
import type { WriteResult } from './mutate.ts'
import type { PagedLists } from './paged-lists.ts'
import type { WriteOptions } from './write-options.ts'

/** The services of the server that the verbs use. */
export type Services = {
  readonly store: Store
  readonly registry: Registry
  readonly quotas: Quotas
  readonly watches: WatchManager
  readonly pages: PagedLists
  readonly maxWatchBufferBytes: number
  /** `ServerOptions.mapEpoch` */
  readonly mapEpoch?: (() => number | undefined) | undefined
}

/** The resource that a request is for, and what to do with it. */
export type Target = {
  readonly verb: Verb
  readonly kind: Kind
  readonly table: Table
  /** Empty for cluster-scoped kinds and for all namespaces. */
  readonly namespace: string
  /** Empty for the collection. */
  readonly name: string
  readonly subresource: '' | 'status' | 'scale' | 'finalize' | 'binding'
}

/** What the client sent. */
export type CallInput = {
  readonly query: URLSearchParams | undefined
  readonly userAgent: string | undefined
  readonly contentType: string
  /** The body as text; empty when there is none. */
  readonly body: string
  /** A new object must not get a higher resource version than this. */
  readonly createBefore?: number | undefined
  /** The body, if it had to be parsed to find out that it is JSON. */
  readonly json?: StrictJson | undefined
}

/** Who sent the request, and the checks of their rights that depend on the stored object or on time. */
export type Caller = {
  readonly user: User
  /** For updates and patches that may create: throws when the user may not create. */
  readonly checkCreate?: (() => void) | undefined
  /** For watches; see {@link Revalidate}. */
  readonly revalidate?: Revalidate | undefined
  /** The admission plugin of the kind, if it has one. */
  readonly admissionPlugin?: AdmissionPlugin | undefined
  readonly deletionPlugin?: DeletionPlugin | undefined
  /** The permissions of the user, for the plugins. */
  readonly isAllowed: AdmissionRequest['isAllowed']
}

/** Where the response goes, and in which form. */
export type CallOutput = {
  readonly response: Reply
  readonly as: Representation
  readonly acceptEncoding: string | undefined
  /** Of a gateway's watch. */
  readonly gatewayWatch?: GatewayWatch | undefined
}

/** What a gateway asks of a watch (`http/partition-protocol.ts`): the lines have their resource version in front. */
export type GatewayWatch = {
  readonly id: string
  /** Before each event is what selectors select by. */
  readonly showsSelected: boolean
  /** The watch ends when it has sent what was there when it began. */
  readonly endsWhenCurrent: boolean
  /** Lines tell which version of home's map this server knows. */
  readonly showsMap: boolean
  /** The newest change of the resource that the gateway has seen here: without it, this server has older data now. */
  readonly known?: number | undefined
}

/** One request for a resource: routed, authenticated and authorized. */
export type Call = {
  readonly target: Target
  readonly input: CallInput
  readonly caller: Caller
  readonly output: CallOutput
}

export function keyOf({ namespace, name }: { namespace: string | undefined; name: string }): string {
  return namespace ? `${namespace}/${name}` : name
}

/** The same call for another kind: a subresource whose body is a kind of its own. */
export function withKind(call: Call, kind: Kind): Call {
  return { ...call, target: { ...call.target, kind } }
}

/**
 * Runs the admission plugin of the kind, if it has one.
 * @throws {StatusError} Forbidden if it rejects the object.
 */
export function admit(
  { target, caller: { user, admissionPlugin, isAllowed }, output }: Call,
  object: KubeObject,
  oldObject: KubeObject | undefined,
  { dryRun: isDryRun }: Pick<WriteOptions, 'dryRun'>,
): void {
  const reason = admissionPlugin?.({ ...target, user, isDryRun, isAllowed, auditAnnotation: annotate(output) }, object, oldObject)
  if (reason !== undefined) throw forbiddenError(target.kind, object.metadata.name ?? target.name, reason)
}

/**
 * Runs the deletion plugin of the kind, if it has one. Returns the object with what the plugin has recorded.
 * @throws {StatusError} Forbidden if it rejects the deletion of the object.
 */
export function admitDeletion(
  { target, caller: { user, deletionPlugin, isAllowed }, output }: Call,
  object: KubeObject,
  { dryRun: isDryRun }: Pick<WriteOptions, 'dryRun'>,
): KubeObject {
  if (!deletionPlugin) return object
  const admitted = { ...object }
  const reason = deletionPlugin({ ...target, user, isDryRun, isAllowed, auditAnnotation: annotate(output) }, admitted)
  if (reason !== undefined) throw forbiddenError(target.kind, object.metadata.name, reason)
  return admitted
}

const annotate =
  ({ response: { audit } }: CallOutput): AdmissionRequest['auditAnnotation'] =>
  (key, value) => {
    if (audit) audit.annotations = { ...audit.annotations, [key]: value }
  }

/** Sends the result of a write. */
export function sendResult(call: Call, result: WriteResult, code: number, warnings: readonly string[], nowMs: number): void {
  if (result.entry) sendEntry(call, result.entry, code, warnings, nowMs)
  else sendObject(call, result.object!, code, warnings)
}

export function sendEntry(call: Call, entry: StoredEntry, code: number, warnings: readonly string[], nowMs: number): void {
  send(call.output.response, code, call.output.as.contentType, renderEntry(call.target.kind, entry, call.output.as, nowMs), warnings)
}

export function sendObject(call: Call, object: KubeObject | object, code: number, warnings?: readonly string[]): void {
  send(call.output.response, code, call.output.as.contentType, finish(stringifyAsciiJson(object), call.output.as), warnings)
}

/** An integer of the query; undefined when absent or negative. The error has the wording of Kubernetes. */
export function readCount(query: URLSearchParams | undefined, name: string): number | undefined {
  const text = query?.get(name)
  if (text === undefined || text === null || text === '') return undefined
  const value = Number(text)
  if (!/^[-+]?[0-9]+$/.test(text) || !Number.isSafeInteger(value)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 40))}: invalid syntax`)
  }
  return value < 0 ? undefined : value
}

export function methodNotAllowed(): StatusError {
  return new StatusError('MethodNotAllowed', 'the server does not allow this method on the requested resource', { details: {} })
}
