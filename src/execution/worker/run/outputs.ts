import { createHash } from 'node:crypto'
import { labels, outputsSecretName, outputsSecretType, type Run, stackResource } from '../../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../../kubernetes/client/index.ts'
import { isReason, type Json, type KubeObject, type OwnerReference } from '../../../kubernetes/object/index.ts'

/** What an engine says a Stack gives to others. */
export type Outputs = Record<string, { value: Json; sensitive: boolean }>

/** On the Secret: the JSON list of the outputs that are secret; those of other Stacks that take them mask these, and only these. */
export const sensitiveAnnotation = 'oarlock.dev/sensitive-outputs'

/** A Secret holds at most 1 MiB; some room is left for its metadata. */
const maxOutputBytes = 900_000

/** Outputs that cannot be kept. */
export class OutputsError extends Error {
  override readonly name = 'OutputsError'
  readonly reason: 'InvalidOutputs' | 'OutputsSecretTaken'
  readonly retryable = false

  constructor(reason: OutputsError['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** sha256 over all outputs, secret ones too; the order of keys does not matter. */
export function outputsDigest(outputs: Outputs): string {
  const entries = Object.keys(outputs)
    .sort()
    .map(name => [name, outputs[name]!.value])
  return `sha256:${createHash('sha256').update(canonicalJson(entries)).digest('hex')}`
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
 * Makes outputs sensitive that `mask` finds a secret in: an engine passes on what it was given, and need not know that it is
 * one (invariant 9). `hidden` names those that did not say so themselves.
 */
export function markSecretOutputs(outputs: Outputs, mask: (text: string) => string): { outputs: Outputs; hidden: string[] } {
  const hidden = Object.keys(outputs).filter(name => {
    const { value, sensitive } = outputs[name]!
    const text = JSON.stringify(value)
    return !sensitive && mask(text) !== text
  })
  const marked = hidden.map(name => [name, { value: outputs[name]!.value, sensitive: true }])
  return { outputs: { ...outputs, ...Object.fromEntries(marked) }, hidden: hidden.sort() }
}

/** The outputs that may be shown. */
export function publicOutputs(outputs: Outputs): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(outputs)
      .filter(([, { sensitive }]) => !sensitive)
      .map(([name, { value }]) => [name, value]),
  )
}

/**
 * The Secret's data: each output as JSON text under its name, in base64.
 * @throws {OutputsError} InvalidOutputs for names a Secret cannot have, and for too much.
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
      `the outputs have ${bytes} bytes (base64), allowed are ${maxOutputBytes}; give others a place to look instead`,
    )
  }
  return data
}

/**
 * Makes the Secret `<stack>-outputs` hold exactly these outputs. It belongs to the Stack and goes with it.
 * @throws {OutputsError} OutputsSecretTaken when a Secret of that name is somebody else's.
 */
export async function writeOutputs(client: Client, run: Run, outputs: Outputs): Promise<void> {
  const { namespace = 'default' } = run.metadata
  const { name: stack, uid } = run.spec.stackRef
  const name = outputsSecretName(stack)
  const secrets = client.resource(secretResource)
  const { apiVersion, kind } = stackResource
  const owner: OwnerReference = { apiVersion, kind, name: stack, uid, controller: true, blockOwnerDeletion: true }
  const sensitive = Object.keys(outputs).filter(key => outputs[key]!.sensitive)
  const annotations = { [sensitiveAnnotation]: JSON.stringify(sensitive.sort()) }
  const metadata = { name, namespace, labels: { [labels.stack]: stack }, annotations, ownerReferences: [owner] }
  const data = outputsData(outputs)
  for (let attempt = 1; ; attempt++) {
    const existing = await secrets.getOrUndefined(name, { namespace })
    try {
      if (!existing) await secrets.create({ metadata, type: outputsSecretType, data })
      else if (ownerUidOf(existing) === uid) {
        await secrets.update({ metadata: { ...metadata, resourceVersion: existing.metadata.resourceVersion }, type: existing.type, data })
      } else if (existing.type === outputsSecretType) {
        // Left by a Stack of the same name that is gone.
        await secrets.delete(name, { namespace, preconditions: { uid: existing.metadata.uid } })
        continue
      } else {
        const message = `Secret ${namespace}/${name} exists and is not the outputs of this Stack; delete or rename it, since outputs are kept under that name`
        throw new OutputsError('OutputsSecretTaken', message)
      }
      return
    } catch (error) {
      if (attempt >= 5 || !isReason(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
    }
  }
}

/** Takes the Secret away again, if it is the Stack's. */
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

function ownerUidOf(secret: KubeObject<SecretBody>): string | undefined {
  return secret.metadata.ownerReferences?.find(({ kind }) => kind === stackResource.kind)?.uid
}
