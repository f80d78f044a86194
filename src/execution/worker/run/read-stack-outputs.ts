import type { Json } from '../../../kubernetes/object/index.ts'
import type { StateClient } from '../../../stores/state/index.ts'
import type { StackOutputs } from '../../engine/index.ts'
import { stringsIn } from './inputs.ts'

/**
 * The outputs of a Stack in the namespace of the Run; undefined if it has none.
 * @param onSecrets gets the sensitive values before they are returned, for the masker (invariant 9).
 */
export async function readStackOutputs(
  state: Pick<StateClient, 'getOutputs'>,
  stack: string,
  signal: AbortSignal,
  onSecrets: (secrets: string[]) => void,
): Promise<StackOutputs | undefined> {
  const found = await state.getOutputs(stack, { signal })
  if (found === undefined) return undefined
  const { data, sensitive: names, pulumiStack } = found
  const outputs: StackOutputs['outputs'] = {}
  for (const [name, base64] of Object.entries(data)) {
    const value = JSON.parse(Buffer.from(base64, 'base64').toString('utf8')) as Json
    const sensitive = names?.includes(name) ?? true
    outputs[name] = { value, sensitive }
    if (sensitive) onSecrets(stringsIn(value))
  }
  return { outputs, ...(pulumiStack !== undefined && { pulumiStack }) }
}
