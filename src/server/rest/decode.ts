import { badRequest, isJsonObject, type KubeObject, type ManagedFieldsEntry, type ObjectMeta, pruneUnknown } from '../../kube/index.ts'
import type { Kind } from '../registry/index.ts'
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

/** Metadata as a client sent it: known fields only, in the order they are stored in. */
export type SentMeta = Partial<ObjectMeta>

/** An object as a client sent it, without what its kind does not know. */
export type Decoded = { object: KubeObject; sent: SentMeta }

/**
 * Reads a request's body as an object of `kind`: checks that it is one, leaves out unknown fields and says so the
 * way `fieldValidation` asks.
 * @throws {StatusError} BadRequest.
 */
export function decode(kind: Kind, body: unknown, options: WriteOptions): Decoded {
  if (!isJsonObject(body)) throw badRequest(`the body of the request must be one ${kind.kind} object, got ${sayType(body)}`)
  expectSame('API version', body.apiVersion, kind.apiVersion)
  expectSame('kind', body.kind, kind.kind)
  const metadata = body.metadata ?? {}
  if (!isJsonObject(metadata)) throw badRequest(`metadata must be an object, got ${sayType(metadata)}`)
  const unknown: string[] = []
  const sent = readMeta(metadata, unknown)
  const { value, pruned } = pruneUnknown(kind.schema, body, '')
  if (unknown.length + pruned.length > 0) reportUnknown([...unknown, ...pruned], options)
  const { apiVersion: _, kind: __, metadata: ___, ...rest } = value as KubeObject
  return { object: { apiVersion: kind.apiVersion, kind: kind.kind, metadata: sent as ObjectMeta, ...rest }, sent }
}

function expectSame(what: string, got: unknown, expected: string): void {
  if (got === undefined || got === '' || got === expected) return
  const value = typeof got === 'string' ? got : JSON.stringify(got)
  throw badRequest(`the ${what} in the data (${value}) does not match the expected ${what} (${expected})`)
}

function reportUnknown(fields: string[], options: WriteOptions): void {
  if (options.fieldValidation === 'Ignore') return
  if (options.fieldValidation === 'Strict') {
    throw badRequest(`strict decoding error: ${fields.map(field => `unknown field "${field}"`).join(', ')}`)
  }
  for (const field of fields) options.warnings.push(`unknown field "${field}"`)
}

function readMeta(metadata: Record<string, unknown>, unknown: string[]): SentMeta {
  const sent: Record<string, unknown> = {}
  for (const field of texts) {
    const value = metadata[field]
    if (value === undefined || value === null || value === '') continue
    if (typeof value !== 'string') throw badRequest(`metadata.${field} must be a string, got ${sayType(value)}`)
    sent[field] = value
  }
  if (typeof metadata.generation === 'number') sent.generation = metadata.generation
  for (const field of ['labels', 'annotations'] as const) {
    const value = metadata[field]
    if (value === undefined || value === null) continue
    if (!isJsonObject(value)) throw badRequest(`metadata.${field} must be an object with string values, got ${sayType(value)}`)
    for (const key of Object.keys(value)) {
      if (typeof value[key] !== 'string') throw badRequest(`metadata.${field}.${key} must be a string, got ${sayType(value[key])}`)
    }
    if (Object.keys(value).length > 0) sent[field] = value
  }
  for (const field of ['ownerReferences', 'finalizers', 'managedFields'] as const) {
    const value = metadata[field]
    if (value === undefined || value === null) continue
    if (!Array.isArray(value)) throw badRequest(`metadata.${field} must be an array, got ${sayType(value)}`)
    // An empty managedFields is a request to forget them, so it is kept.
    if (value.length > 0 || field === 'managedFields') sent[field] = value as ManagedFieldsEntry[]
  }
  for (const field of Object.keys(metadata)) if (!known.has(field)) unknown.push(`metadata.${field}`)
  return sent as SentMeta
}

function sayType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
