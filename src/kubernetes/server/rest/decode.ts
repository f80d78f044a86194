import {
  badRequest,
  isJsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type StatusError,
  setOwn,
} from '../../object/index.ts'
import { pruneUnknown } from '../../schema/index.ts'
import type { Kind } from '../registry/index.ts'
import { isJson, parseBody, parseBodyStrict } from './body.ts'
import type { Call } from './call.ts'
import { checkOwned } from './check-size.ts'
import { nullsToZero } from './nulls-to-zero.ts'
import type { WriteOptions } from './write-options.ts'

const texts = ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp'] as const
const known = new Set<string>([
  ...texts,
  'generation',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'managedFields',
  'selfLink',
])

/** At most this many unknown fields of metadata are reported. */
const maxUnknown = 1_000

/** Metadata as a client sent it: known fields only, in the order they are stored in. */
export type SentMeta = Partial<ObjectMeta>

/** An object as a client sent it, without unknown fields. */
export type Decoded = {
  object: KubeObject
  sent: SentMeta
  unknown: readonly string[]
  /** True for the result of a patch, where a uid is an immutable field and not a precondition. */
  isPatched?: boolean
}

/**
 * Decodes a parsed body as an object of `kind`: checks its type, drops unknown fields and reports them as `fieldValidation` requires.
 * @param body its depth and size must have been checked, see `check-size.ts`.
 * @param live the stored object that `body` is a patched version of, if it is: fields that both share are known.
 * @throws {StatusError} BadRequest.
 */
export function decode(
  kind: Kind,
  body: unknown,
  options: WriteOptions,
  { duplicates = [], live }: { duplicates?: readonly string[]; live?: KubeObject } = {},
): Decoded {
  if (!isJsonObject(body)) throw badRequest(`the body of the request must be one ${kind.kind} object, got ${formatType(body)}`)
  expectSame('API version', body.apiVersion, kind.apiVersion)
  expectSame('kind', body.kind, kind.kind)
  // For a custom resource there is no Go type that would give an untyped body its kind.
  if (kind.isCustom && !body.kind) {
    const text = JSON.stringify(body)
    throw badRequest(
      `the object provided is unrecognized (must be of type ${kind.kind}): Object 'Kind' is missing in '${text.slice(0, 1_000)}' (${text.slice(0, 30)}${text.length > 30 ? ' ...' : ''})`,
    )
  }
  const metadata = body.metadata ?? {}
  if (!isJsonObject(metadata)) throw badRequest(`metadata must be an object, got ${formatType(metadata)}`)
  const unknown: string[] = []
  const sent = readMeta(metadata, unknown)
  const shared = live && sharedFields(body, live)
  const { value, pruned } = pruneUnknown(kind.schema, shared ? withoutFields(body, shared) : body, '')
  unknown.push(...(kind.isCustom ? pruned.sort() : pruned))
  if (unknown.length + duplicates.length > 0) report(kind, duplicates, unknown, options)
  const { apiVersion: _, kind: __, metadata: ___, ...rest } = (kind.isCustom ? value : nullsToZero(kind.schema, value)) as KubeObject
  const object = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: sent as ObjectMeta, ...rest }
  for (const field of shared ?? []) setOwn(object, field, body[field])
  return { object, sent, unknown }
}

/** The fields other than metadata that a patch did not touch. */
function sharedFields(body: Record<string, unknown>, live: KubeObject): string[] {
  return Object.keys(body).filter(
    field => field !== 'metadata' && typeof body[field] === 'object' && Object.hasOwn(live, field) && body[field] === live[field],
  )
}

function withoutFields(body: Record<string, unknown>, fields: readonly string[]): Record<string, unknown> {
  const rest = { ...body }
  for (const field of fields) delete rest[field]
  return rest
}

function expectSame(what: string, got: unknown, expected: string): void {
  if (got === undefined || got === '' || got === expected) return
  const value = typeof got === 'string' ? got : JSON.stringify(got)
  throw badRequest(`the ${what} in the data (${value}) does not match the expected ${what} (${expected})`)
}

function report(kind: Kind, duplicates: readonly string[], unknown: readonly string[], options: WriteOptions): void {
  if (options.fieldValidation === 'Ignore') return
  const texts = [...duplicates.map(field => `duplicate field "${field}"`), ...unknown.map(field => `unknown field "${field}"`)]
  if (options.fieldValidation === 'Strict') {
    throw badRequest(
      `${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: strict decoding error: ${texts.join(', ')}`,
    )
  }
  options.warnings.push(...texts)
}

function readMeta(metadata: Record<string, unknown>, unknown: string[]): SentMeta {
  const sent: Record<string, unknown> = {}
  for (const field of texts) {
    const value = metadata[field]
    if (value === undefined || value === null || value === '') continue
    if (typeof value !== 'string') throw badRequest(`metadata.${field} must be a string, got ${formatType(value)}`)
    sent[field] = value
  }
  const { generation } = metadata
  if (generation !== undefined && generation !== null) {
    if (!Number.isSafeInteger(generation)) throw badRequest(`metadata.generation must be a whole number, got ${JSON.stringify(generation)}`)
    sent.generation = generation as number
  }
  for (const field of ['labels', 'annotations'] as const) {
    const value = metadata[field]
    if (value === undefined || value === null) continue
    if (!isJsonObject(value)) throw badRequest(`metadata.${field} must be an object with string values, got ${formatType(value)}`)
    for (const key of Object.keys(value)) {
      if (typeof value[key] !== 'string') throw badRequest(`metadata.${field}.${key} must be a string, got ${formatType(value[key])}`)
    }
    if (Object.keys(value).length > 0) sent[field] = value
  }
  for (const field of ['ownerReferences', 'finalizers', 'managedFields'] as const) {
    const value = metadata[field]
    if (value === undefined || value === null) continue
    if (!Array.isArray(value)) throw badRequest(`metadata.${field} must be an array, got ${formatType(value)}`)
    // An empty managedFields is a request to clear them.
    if (value.length > 0 || field === 'managedFields') sent[field] = value as ManagedFieldsEntry[]
  }
  for (const field of Object.keys(metadata)) if (!known.has(field) && unknown.length < maxUnknown) unknown.push(`metadata.${field}`)
  return sent as SentMeta
}

function formatType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** The body of a call as an object of its kind. Duplicate keys are reported as `fieldValidation` requires. */
export function decodeBody({ target: { kind }, input: { body, contentType } }: Call, options: WriteOptions): Decoded {
  const { value, duplicates } =
    options.fieldValidation === 'Ignore' || !isJson(contentType)
      ? { value: parseBody(body, contentType), duplicates: [] }
      : parseBodyStrict(body)
  const decoded = decode(kind, value, options, { duplicates })
  checkOwned(kind, decoded.object, body.length)
  return decoded
}

export function undeterminedName(name: string): StatusError {
  return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`)
}
