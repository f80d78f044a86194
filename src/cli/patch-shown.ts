import { isShown, type Stack, stackResource } from '../api/index.ts'
import { type Client, patchIf } from '../kubernetes/client/index.ts'

/**
 * Changes a Stack if it is still the one that was shown (invariant 11), and the plan with `digest`, if one is given, awaits a decision. Its other
 * annotations and its status may have changed.
 * @returns whether it was changed.
 */
export async function patchShown(
  client: Client,
  { metadata }: Pick<Stack, 'metadata'>,
  digest: string | undefined,
  patchOf: (stack: Pick<Stack, 'metadata' | 'spec'>) => object,
): Promise<boolean> {
  const { uid, generation = 0 } = metadata
  const isSame = (stack: Pick<Stack, 'metadata' | 'status'>) => isShown(stack, { uid, generation, digest })
  return (await patchIf(client.resource(stackResource), metadata, isSame, patchOf)) !== undefined
}
