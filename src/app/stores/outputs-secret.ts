import {
  labels,
  outputsSecretName,
  outputsSecretType,
  sensitiveOutputsAnnotation,
  sensitiveOutputsIn,
  stackResource,
} from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { equalJson, isReason, type KubeObject, type OwnerReference } from '../../kubernetes/object/index.ts'
import { RunInputsError, type StackOutputsData } from '../../stores/state/index.ts'

/** On the Secret of a Stack of engine pulumi: {@link StackOutputsData.pulumiStack}. */
const pulumiStackAnnotation = 'oarlock.dev/pulumi-stack'

/** The Stack whose outputs are in the Secret `<stack>-outputs`. */
export type OutputsOwner = { readonly namespace: string; readonly stack: string; readonly stackUid: string }

export type OutputsSecret = KubeObject<SecretBody> | undefined

export async function readOutputsSecret(client: Client, namespace: string, stack: string): Promise<OutputsSecret> {
  return await client.resource(secretResource).getOrUndefined(outputsSecretName(stack), { namespace })
}

/** The outputs in a Secret; undefined if it is none of outputs. */
export function outputsIn(secret: OutputsSecret): StackOutputsData | undefined {
  if (secret?.type !== outputsSecretType) return undefined
  const pulumiStack = secret.metadata.annotations?.[pulumiStackAnnotation]
  return { data: secret.data ?? {}, sensitive: sensitiveOutputsIn(secret.metadata), ...(pulumiStack !== undefined && { pulumiStack }) }
}

/** @throws {RunInputsError} OutputsSecretTaken if the Secret cannot become the one of this Stack's outputs. */
export function expectWritable(found: OutputsSecret, owner: OutputsOwner): void {
  if (!found || ownerUidOf(found) === owner.stackUid || found.type === outputsSecretType) return
  const name = `${owner.namespace}/${found.metadata.name}`
  throw new RunInputsError(
    'OutputsSecretTaken',
    `Secret ${name} already exists and does not hold the outputs of this Stack; delete or rename it`,
  )
}

/**
 * Creates or replaces the Secret `<stack>-outputs`. The Stack owns it, so it is deleted with the Stack.
 * @param check is called before each attempt.
 * @throws {RunInputsError} OutputsSecretTaken
 */
export async function writeOutputsSecret(
  client: Client,
  owner: OutputsOwner,
  { data, sensitive = Object.keys(data), pulumiStack }: StackOutputsData,
  check: () => Promise<void>,
): Promise<void> {
  const { namespace, stack, stackUid } = owner
  const name = outputsSecretName(stack)
  const secrets = client.resource(secretResource)
  const { apiVersion, kind } = stackResource
  const reference: OwnerReference = { apiVersion, kind, name: stack, uid: stackUid, controller: true, blockOwnerDeletion: true }
  const annotations = {
    [sensitiveOutputsAnnotation]: JSON.stringify([...sensitive].sort()),
    ...(pulumiStack !== undefined && { [pulumiStackAnnotation]: pulumiStack }),
  }
  const metadata = { name, namespace, labels: { [labels.stack]: stack }, annotations, ownerReferences: [reference] }
  for (let attempt = 1; ; attempt++) {
    await check()
    const existing = await readOutputsSecret(client, namespace, stack)
    expectWritable(existing, owner)
    try {
      if (!existing) await secrets.create({ metadata, type: outputsSecretType, data })
      else if (ownerUidOf(existing) === stackUid) {
        if (holds(existing, data, annotations)) return
        await secrets.update({ metadata: { ...metadata, resourceVersion: existing.metadata.resourceVersion }, type: existing.type, data })
      } else {
        // The Secret of a deleted Stack of the same name.
        await secrets.delete(name, { namespace, preconditions: { uid: existing.metadata.uid } })
        continue
      }
      return
    } catch (error) {
      if (attempt >= 5 || !isReason(error, 'Conflict', 'AlreadyExists', 'NotFound')) throw error
    }
  }
}

/** Deletes the Secret, if the Stack owns it. */
export async function deleteOutputsSecret(client: Client, { namespace, stack, stackUid }: OutputsOwner): Promise<void> {
  const existing = await readOutputsSecret(client, namespace, stack)
  if (!existing || ownerUidOf(existing) !== stackUid) return
  await client
    .resource(secretResource)
    .delete(existing.metadata.name, { namespace, preconditions: { uid: existing.metadata.uid } })
    .catch(error => {
      if (!isReason(error, 'NotFound', 'Conflict')) throw error
    })
}

/** Nothing is to be written then. */
function holds(
  { metadata, data = {} }: KubeObject<SecretBody>,
  outputs: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): boolean {
  const names = [sensitiveOutputsAnnotation, pulumiStackAnnotation]
  return names.every(name => metadata.annotations?.[name] === wanted[name]) && equalJson(data, outputs)
}

function ownerUidOf(secret: KubeObject<SecretBody>): string | undefined {
  return secret.metadata.ownerReferences?.find(({ kind }) => kind === stackResource.kind)?.uid
}
