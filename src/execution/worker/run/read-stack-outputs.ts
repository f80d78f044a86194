import { outputsSecretName, outputsSecretType, type Run } from '../../../api/index.ts'
import { type Client, secretResource } from '../../../kubernetes/client/index.ts'
import type { Json } from '../../../kubernetes/object/index.ts'
import type { StackOutputs } from '../../engine/index.ts'
import { isSecretOutput, stringsIn } from './inputs.ts'
import { explainForbidden } from './inputs-access.ts'
import { pulumiStackAnnotation } from './outputs.ts'

/**
 * The outputs of a Stack in the namespace of the Run, from its Secret; undefined if it has none.
 * @param onSecrets gets the sensitive values before they are returned, for the masker (invariant 9).
 * @throws {InputsAccessError}
 */
export async function readStackOutputs(
  client: Client,
  run: Run,
  stack: string,
  signal: AbortSignal,
  onSecrets: (secrets: string[]) => void,
): Promise<StackOutputs | undefined> {
  const { namespace = 'default' } = run.metadata
  const found = await explainForbidden(
    client.resource(secretResource).getOrUndefined(outputsSecretName(stack), { namespace, signal }),
    namespace,
  )
  if (found?.type !== outputsSecretType) return undefined
  const isSensitive = isSecretOutput(found)
  const outputs: StackOutputs['outputs'] = {}
  for (const [name, base64] of Object.entries(found.data ?? {})) {
    const value = JSON.parse(Buffer.from(base64, 'base64').toString('utf8')) as Json
    outputs[name] = { value, sensitive: isSensitive(name) }
    if (isSensitive(name)) onSecrets(stringsIn(value))
  }
  const pulumiStack = found.metadata.annotations?.[pulumiStackAnnotation]
  return { outputs, ...(pulumiStack !== undefined && { pulumiStack }) }
}
