import { labels, outputsSecretName, outputsSecretType, type Run, stackResource } from '../../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../../kubernetes/client/index.ts'
import { equalJson, isReason, type Json, type KubeObject, type OwnerReference } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'
import { explainForbidden } from './inputs-access.ts'

/** The outputs of a Stack, as its engine returned them. */
export type Outputs = Record<string, { value: Json; sensitive: boolean }>

/** On the Secret: a JSON list of the sensitive outputs. Stacks that use the outputs mask these, and only these. */
export const sensitiveAnnotation = 'oarlock.dev/sensitive-outputs'

/** On the Secret of a Stack of engine pulumi: `<project>/<stack>`, by which the programs of other Stacks refer to it. */
export const pulumiStackAnnotation = 'oarlock.dev/pulumi-stack'

/** A Secret holds at most 1 MiB, including its metadata. */
const maxOutputBytes = 900_000

/** Outputs that cannot be stored. */
export class OutputsError extends Error {
  override readonly name = 'OutputsError'
  readonly reason: 'InvalidOutputs' | 'OutputsSecretTaken'
  readonly retryable = false

  constructor(reason: OutputsError['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** sha256 over all outputs, including sensitive ones, whatever the order of their keys. */
export function outputsDigest(outputs: Outputs): string {
  const entries = Object.keys(outputs)
    .sort()
    .map(name => [name, outputs[name]!.value])
  return `sha256:${sha256(canonicalJson(entries))}`
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const object = value as Record<string, unknown>
  return `{${Object.keys(object)
    .sort()
    .map(key => `${JSON.stringify(key)}:${canonicalJson(object[key])}`)
    .join(',')}}`
}

/**
 * Marks outputs as sensitive if `mask` finds a secret in them: an engine may pass on an input without knowing that it is a secret
 * (invariant 9). `marked` names the outputs that the engine had not marked.
 */
export function markSecretOutputs(outputs: Outputs, mask: (text: string) => string): { outputs: Outputs; marked: string[] } {
  const marked = Object.keys(outputs).filter(name => {
    const { value, sensitive } = outputs[name]!
    const text = JSON.stringify(value)
    return !sensitive && mask(text) !== text
  })
  const sensitive = marked.map(name => [name, { value: outputs[name]!.value, sensitive: true }])
  return { outputs: { ...outputs, ...Object.fromEntries(sensitive) }, marked: marked.sort() }
}

/** The outputs that are not sensitive. */
export function publicOutputs(outputs: Outputs): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(outputs)
      .filter(([, { sensitive }]) => !sensitive)
      .map(([name, { value }]) => [name, value]),
  )
}

/**
 * The Secret's data: each output as JSON text under its name, in base64.
 * @throws {OutputsError} InvalidOutputs for names that a Secret cannot have, and for more than 900,000 bytes.
 */
export function outputsData(outputs: Outputs): Record<string, string> {
  const data: Record<string, string> = {}
  let bytes = 0
  for (const [name, { value }] of Object.entries(outputs)) {
    if (!/^[-._a-zA-Z0-9]{1,253}$/.test(name)) {
      throw new OutputsError('InvalidOutputs', `output name ${JSON.stringify(name)} must be 1 to 253 letters, digits, "-", "_" or "."`)
    }
    data[name] = Buffer.from(JSON.stringify(value)).toString('base64')
    bytes += name.length + data[name].length
  }
  if (bytes > maxOutputBytes) {
    throw new OutputsError(
      'InvalidOutputs',
      `outputs have ${bytes} bytes in base64, at most ${maxOutputBytes} are allowed; store large values elsewhere and output their location`,
    )
  }
  return data
}

/** The Secret that the outputs of a Stack are in. */
export type OutputsSecret = KubeObject<SecretBody> | undefined

/** Read before the apply: outputs that cannot be stored must not be noticed only when everything is created. @throws {InputsAccessError} */
export async function readOutputsSecret(client: Client, run: Run, signal?: AbortSignal): Promise<OutputsSecret> {
  const { namespace = 'default' } = run.metadata
  const name = outputsSecretName(run.spec.stackRef.name)
  return await explainForbidden(client.resource(secretResource).getOrUndefined(name, { namespace, signal }), namespace)
}

/**
 * Creates or replaces the Secret `<stack>-outputs`, which {@link readOutputsSecret} has found or not. The Stack owns it, so it is deleted with the Stack.
 * @throws {OutputsError} OutputsSecretTaken if a Secret of that name does not hold the outputs of this Stack.
 */
export async function writeOutputs(client: Client, run: Run, outputs: Outputs, found: OutputsSecret, pulumiStack?: string): Promise<void> {
  const { namespace = 'default' } = run.metadata
  const { name: stack, uid } = run.spec.stackRef
  const name = outputsSecretName(stack)
  const secrets = client.resource(secretResource)
  const { apiVersion, kind } = stackResource
  const owner: OwnerReference = { apiVersion, kind, name: stack, uid, controller: true, blockOwnerDeletion: true }
  const sensitive = Object.keys(outputs).filter(key => outputs[key]!.sensitive)
  const annotations = {
    [sensitiveAnnotation]: JSON.stringify(sensitive.sort()),
    ...(pulumiStack !== undefined && { [pulumiStackAnnotation]: pulumiStack }),
  }
  const metadata = { name, namespace, labels: { [labels.stack]: stack }, annotations, ownerReferences: [owner] }
  const data = outputsData(outputs)
  for (let attempt = 1; ; attempt++) {
    const existing = attempt === 1 ? found : await readOutputsSecret(client, run)
    try {
      if (existing && ownerUidOf(existing) === uid && holds(existing, data, annotations)) return
      if (!existing) await secrets.create({ metadata, type: outputsSecretType, data })
      else if (ownerUidOf(existing) === uid) {
        await secrets.update({ metadata: { ...metadata, resourceVersion: existing.metadata.resourceVersion }, type: existing.type, data })
      } else if (existing.type === outputsSecretType) {
        // The Secret of a deleted Stack of the same name.
        await secrets.delete(name, { namespace, preconditions: { uid: existing.metadata.uid } })
        continue
      } else {
        const message = `Secret ${namespace}/${name} already exists and does not hold the outputs of this Stack; delete or rename it`
        throw new OutputsError('OutputsSecretTaken', message)
      }
      return
    } catch (error) {
      if (attempt >= 5 || !isReason(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
    }
  }
}

/** Deletes the Secret, if the Stack owns it. */
export async function deleteOutputs(client: Client, run: Run): Promise<void> {
  const { namespace } = run.metadata
  const name = outputsSecretName(run.spec.stackRef.name)
  const existing = await client.resource(secretResource).getOrUndefined(name, { namespace })
  if (!existing || ownerUidOf(existing) !== run.spec.stackRef.uid) return
  await client
    .resource(secretResource)
    .delete(name, { namespace, preconditions: { uid: existing.metadata.uid } })
    .catch(error => {
      if (!isReason(error, 'NotFound', 'Conflict')) throw error
    })
}

/** Nothing is to be written then. */
function holds(
  { metadata, data = {} }: KubeObject<SecretBody>,
  outputs: Record<string, string>,
  wanted: Readonly<Record<string, string>>,
): boolean {
  const names = [sensitiveAnnotation, pulumiStackAnnotation]
  return names.every(name => metadata.annotations?.[name] === wanted[name]) && equalJson(data, outputs)
}

function ownerUidOf(secret: KubeObject<SecretBody>): string | undefined {
  return secret.metadata.ownerReferences?.find(({ kind }) => kind === stackResource.kind)?.uid
}
