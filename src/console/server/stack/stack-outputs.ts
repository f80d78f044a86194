import { outputsSecretName, outputsSecretType, sensitiveOutputsIn } from '../../../api/index.ts'
import { metadataOnly, secretResource } from '../../../kubernetes/client/index.ts'
import { StatusError } from '../../../kubernetes/object/index.ts'
import type { StackOutput, StackOutputs } from '../../protocol/index.ts'
import { isForbidden } from '../error-response.ts'
import { readStack, type StackRequest } from './stack-request.ts'

/** The outputs of a Stack: those that are sensitive by name only. The values of the Secret are not read. */
export async function stackOutputs(request: StackRequest): Promise<StackOutputs> {
  const { client, namespace, name } = request
  const { status } = await readStack(request)
  const secretName = outputsSecretName(name)
  const outputs = Object.entries(status?.outputs ?? {}).map(([output, value]): StackOutput => ({ name: output, isSensitive: false, value }))
  const known = new Set(outputs.map(output => output.name))
  const sensitive = await client
    .resource(metadataOnly(secretResource))
    .getOrUndefined(secretName, { namespace })
    .catch(error => {
      if (isForbidden(error)) return 'forbidden' as const
      throw error
    })
  const names = sensitive === 'forbidden' || !sensitive ? [] : (sensitiveOutputsIn(sensitive.metadata) ?? [])
  for (const output of names) if (!known.has(output)) outputs.push({ name: output, isSensitive: true, hidden: true })
  return {
    outputs: outputs.sort((a, b) => (a.name < b.name ? -1 : 1)),
    secretName,
    ...(sensitive === 'forbidden' && { problem: `sensitive outputs are in Secret ${secretName}, which you may not read` }),
  }
}

/** The value of one sensitive output, which the user has asked for: a read of the Secret that the audit log has. */
export async function revealOutput({ client, namespace, name, rest: [output = ''] }: StackRequest): Promise<{ readonly value: unknown }> {
  const secret = await client.resource(secretResource).get(outputsSecretName(name), { namespace })
  const data = secret.type === outputsSecretType && Object.hasOwn(secret.data ?? {}, output) ? secret.data?.[output] : undefined
  if (data === undefined) throw new StatusError('NotFound', `stack/${name} has no output ${JSON.stringify(output)}`)
  return { value: Buffer.from(data, 'base64').toString() }
}
