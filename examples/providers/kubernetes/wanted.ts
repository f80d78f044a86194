/** The object that should exist in the other cluster: the manifest with its name, and with the fields of other objects. */
import type { ExternalRequest } from '../../../src/controllers/managed/index.ts'
import { computeKStatus, isConditionTrue, type KubeObject, type NewObject } from '../../../src/kubernetes/index.ts'
import { readField, withField } from './field-path.ts'
import { type ObjectBody, objectResource } from './kinds.ts'

type Source = { readonly apiVersion?: string | undefined; readonly kind?: string | undefined; readonly name: string }

/** The name in the other cluster. */
export function nameOf({
  object,
  externalName = object.metadata.name,
}: Pick<ExternalRequest<ObjectBody>, 'object' | 'externalName'>): string {
  return object.spec.forProvider.manifest.metadata.name ?? externalName
}

/** @throws {Error} naming what another object lacks. */
export async function wantedObject(request: ExternalRequest<ObjectBody>): Promise<NewObject<unknown>> {
  const { manifest, patches = [] } = request.object.spec.forProvider
  let wanted: unknown = { ...manifest, metadata: { ...manifest.metadata, name: nameOf(request) } }
  for (const { from, toFieldPath, asText = false } of patches) {
    const source = await read(request, from)
    const value = readField(source, from.fieldPath)
    if (value === undefined) throw new Error(`waiting for ${textOf(from)}: it has no field ${from.fieldPath}`)
    checkSecrecy(manifest.kind, from, toFieldPath, source)
    wanted = withField(wanted, toFieldPath, asText && typeof value !== 'string' ? JSON.stringify(value) : value)
  }
  return wanted as NewObject<unknown>
}

/** @throws {Error} naming the first object that is missing or not ready. */
export async function checkDependencies(request: ExternalRequest<ObjectBody>): Promise<void> {
  for (const source of request.object.spec.forProvider.dependsOn ?? []) {
    const found = await read(request, source)
    const { status, message } = computeKStatus(found)
    // An Object without a status was not reconciled yet; of a kind that is not known that cannot be said.
    const isObject = found.kind === objectResource.kind && found.apiVersion === objectResource.apiVersion
    const isPending = isObject && !isConditionTrue((found as KubeObject<ObjectBody>).status?.conditions, 'Ready')
    if (status !== 'Current' || isPending) throw new Error(`waiting for ${textOf(source)}: ${isPending ? 'it is not Ready' : message}`)
  }
}

/** What is observed of the remote object is in the status of the Object, except for the values of Secrets. */
function checkSecrecy(
  kind: string,
  { name, fieldPath }: { name: string; fieldPath: string },
  toFieldPath: string,
  source: KubeObject,
): void {
  if (source.kind === 'Secret' && !(kind === 'Secret' && /^(data|stringData)\b/.test(toFieldPath)))
    throw new Error(
      `spec.forProvider.patches: ${fieldPath} of Secret ${name} can only be copied into data or stringData of a Secret, not into ${toFieldPath} of a ${kind}, which is in the status of this Object`,
    )
  const observed = (source as KubeObject<ObjectBody>).status?.atProvider?.manifest as { kind?: string } | undefined
  if (observed?.kind === 'Secret' && /^status\.atProvider\.manifest\.(string)?[dD]ata\b/.test(fieldPath))
    throw new Error(
      `spec.forProvider.patches: ${fieldPath} of Object ${name} is a value of a remote Secret, which is not in the status; publish it with connectionDetails, and copy it from that Secret`,
    )
}

/** Only of the namespace of the Object: its author may have no rights elsewhere, and this process may. */
async function read({ object, client, signal }: ExternalRequest<ObjectBody>, source: Source): Promise<KubeObject> {
  const { apiVersion = objectResource.apiVersion, kind = objectResource.kind, name } = source
  const resource = await client.discover(apiVersion, kind)
  if (resource.scope !== 'Namespaced') throw new Error(`${kind} is not a kind with namespaces: only objects of the namespace can be read`)
  const found = await client.resource(resource).getOrUndefined(name, { namespace: object.metadata.namespace, signal })
  if (!found) throw new Error(`waiting for ${textOf(source)}, which does not exist`)
  return found as KubeObject
}

function textOf({ kind = objectResource.kind, name }: Source): string {
  return `${kind} ${name}`
}
