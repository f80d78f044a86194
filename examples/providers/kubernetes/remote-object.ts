import { createHash } from 'node:crypto'
import type { ExternalRequest, ManagedOptions, Observation } from '../../../src/controllers/managed/index.ts'
import {
  changedFields,
  computeKStatus,
  desiredFields,
  isJsonObject,
  type KubeObject,
  type NewObject,
  type Resource,
  StatusError,
} from '../../../src/kubernetes/index.ts'
import type { Clusters, Connection } from './clusters.ts'
import { readField } from './field-path.ts'
import { type ObjectBody, objectResource } from './kinds.ts'
import { checkDependencies, nameOf, wantedObject } from './wanted.ts'

type State = { readonly found: KubeObject; readonly wanted: NewObject<unknown> | undefined }
type Request = ExternalRequest<ObjectBody>

/** The options of the controller; connections come from `clusters`. */
export function objectOptions(clusters: Clusters): ManagedOptions<ObjectBody, Connection, State> {
  return {
    kind: objectResource,
    name: 'kubernetes-objects',
    hasDeterministicNames: true,
    // An API server shows immediately what was created.
    creationGraceMs: 1,
    connect: request => clusters.connect(request),
    disconnect: connection => connection.release(),
    async observe({ client }, request) {
      const { object, signal } = request
      const { manifest } = object.spec.forProvider
      const resource = await client.discover(manifest.apiVersion, manifest.kind)
      const found = await client.resource(resource).getOrUndefined(nameOf(request), { namespace: manifest.metadata.namespace, signal })
      if (!found) return { exists: false }
      const isDeleting = object.metadata.deletionTimestamp !== undefined
      // What the other objects say, and connection details, are no longer needed for a deletion.
      const wanted = isDeleting ? undefined : await wantedObject(request)
      const fields = wanted ? await differences(request, client.resource(resource), found as KubeObject, wanted) : []
      const { details, missing } = connectionDetailsOf(found as KubeObject, isDeleting ? [] : object.spec.forProvider.connectionDetails)
      return {
        ...{ exists: true, isUpToDate: fields.length === 0, diff: fields.slice(0, 10).join(', ') },
        ready: missing ? { reason: 'Unavailable', message: missing } : readiness(object.spec.forProvider.readiness, found as KubeObject),
        atProvider: { manifest: observed(found as KubeObject) },
        connectionDetails: details,
        state: { found: found as KubeObject, wanted },
      }
    },
    async create(connection, request) {
      await checkDependencies(request)
      await apply(connection, request, await wantedObject(request))
    },
    async update(connection, request, { state }) {
      if (state?.wanted) await apply(connection, request, state.wanted)
    },
    async delete({ client }, { object, signal }, { state }) {
      // The server removes it when its own finalizers are gone.
      if (!state || state.found.metadata.deletionTimestamp) return
      const { manifest } = object.spec.forProvider
      const { name, namespace, uid } = state.found.metadata
      const resource: Resource = await client.discover(manifest.apiVersion, manifest.kind)
      await client.resource(resource).delete(name, { namespace, preconditions: { uid }, propagationPolicy: 'Background', signal })
    },
  }
}

/** One for each Object, so that two Objects with the same remote object are in conflict instead of overwriting each other all the time. */
export function fieldManagerOf({ metadata }: { metadata: { namespace?: string | undefined; name: string } }): string {
  const name = `object/${metadata.namespace}/${metadata.name}`
  return name.length <= 128 ? name : `${name.slice(0, 90)}-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`
}

async function apply({ client }: Connection, { object, signal }: Request, wanted: NewObject<unknown>): Promise<void> {
  const { manifest, force = false } = object.spec.forProvider
  const resource = await client.discover(manifest.apiVersion, manifest.kind)
  try {
    await client.resource(resource).apply(wanted, { force, fieldManager: fieldManagerOf(object), signal })
  } catch (error) {
    throw explained(error)
  }
}

/** Paths that an apply would change, as the server itself decides in a dry run: with defaults, and with what other managers own. */
async function differences(
  { object, signal }: Request,
  remote: { apply(object: NewObject<unknown>, options: object): Promise<KubeObject<unknown>> },
  found: KubeObject,
  wanted: NewObject<unknown>,
): Promise<string[]> {
  const fieldManager = fieldManagerOf(object)
  const { force = false } = object.spec.forProvider
  try {
    const next = (await remote.apply(wanted, { force, fieldManager, dryRun: true, signal })) as KubeObject
    const isManaged = found.metadata.managedFields?.some(({ manager, operation }) => manager === fieldManager && operation === 'Apply')
    return [...changedFields(desiredFields(found), desiredFields(next)), ...(isManaged ? [] : ['metadata.managedFields'])]
  } catch (error) {
    throw explained(error)
  }
}

function explained(error: unknown): unknown {
  if (!(error instanceof StatusError)) return error
  const conflicts = (error.details?.causes ?? []).filter(({ reason }) => reason === 'FieldManagerConflict')
  if (conflicts.length === 0) return error
  const managers = new Set(conflicts.map(({ message }) => /conflict with ("[^"]+")/.exec(message ?? '')?.[1] ?? message))
  const fields = conflicts.map(({ field }) => field).join(', ')
  return new Error(
    `${fields} is managed by ${[...managers].join(', ')}: remove it from spec.forProvider.manifest, or set spec.forProvider.force`,
    {
      cause: error,
    },
  )
}

function readiness(policy: 'Exists' | 'Current' | 'Conditions' | undefined, found: KubeObject): NonNullable<Observation['ready']> {
  if (policy === 'Exists') return true
  if (policy === 'Conditions') {
    const { conditions = [] } = (found.status ?? {}) as { conditions?: { type: string; status: string; message?: string }[] }
    const missing = conditions.find(({ status }) => status !== 'True')
    if (conditions.length === 0) return { reason: 'Unavailable', message: 'its status has no conditions' }
    return missing
      ? { reason: 'Unavailable', message: `condition ${missing.type} is ${missing.status}${missing.message ? `: ${missing.message}` : ''}` }
      : true
  }
  const { status, message } = computeKStatus(found)
  return status === 'Current' ? true : { reason: 'Unavailable', message }
}

/** Without what only the server needs, and without values of a Secret. */
function observed(found: KubeObject): Record<string, unknown> {
  const { managedFields: _, ...metadata } = found.metadata
  const { 'kubectl.kubernetes.io/last-applied-configuration': _last, ...annotations } = metadata.annotations ?? {}
  const shown: Record<string, unknown> = { ...found, metadata: { ...metadata, ...(metadata.annotations && { annotations }) } }
  if (found.kind !== 'Secret') return shown
  for (const field of ['data', 'stringData']) {
    const values = shown[field]
    if (isJsonObject(values)) shown[field] = Object.fromEntries(Object.keys(values).map(key => [key, '']))
  }
  return shown
}

/** What can be published, and what the remote object lacks: its server may fill in the field later. @throws {TypeError} for a path that cannot be read. */
function connectionDetailsOf(
  found: KubeObject,
  wanted: ObjectBody['spec']['forProvider']['connectionDetails'] = [],
): { readonly details: Record<string, string>; readonly missing: string | undefined } {
  const details: Record<string, string> = {}
  const missing: string[] = []
  for (const { key, fieldPath } of wanted) {
    const value = readField(found, fieldPath)
    if (value === undefined) {
      missing.push(fieldPath)
      continue
    }
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    details[key] = found.kind === 'Secret' && fieldPath.startsWith('data') ? Buffer.from(text, 'base64').toString() : text
  }
  const message = `spec.forProvider.connectionDetails: ${found.kind} ${found.metadata.name} has no field ${missing.join(', ')}`
  return { details, missing: missing.length > 0 ? message : undefined }
}
