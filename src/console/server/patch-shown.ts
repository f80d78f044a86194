import { type Blocker, formatBlocker, isShown, type ShownVersion, type Stack, stackResource } from '../../api/index.ts'
import { type Client, patchIf } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'

/** A Stack as it was shown. */
export type ShownStack = ShownVersion & { readonly namespace: string; readonly name: string }

/**
 * Changes the Stack if it is still the one that was shown (invariant 11).
 * @param digest of the plan that must await a decision.
 * @param blockerOf why the Stack as it was shown does not allow it.
 * @throws {StatusError} Conflict if it has changed since, or with what blocks it.
 */
export async function patchShown(
  client: Client,
  { namespace, name, ...shown }: ShownStack & { readonly digest?: string },
  patchOf: (stack: Stack) => object,
  blockerOf: (stack: Stack) => Blocker | undefined = () => undefined,
): Promise<Stack> {
  const stacks = client.resource(stackResource)
  const patched = await patchIf(
    stacks,
    { namespace, name },
    stack => {
      if (!isShown(stack as Stack, shown)) return false
      const blocker = blockerOf(stack as Stack)
      if (blocker) throw new StatusError('Conflict', `stack/${name}: ${formatBlocker(blocker)}`)
      return true
    },
    stack => patchOf(stack as Stack),
  )
  if (patched) return patched as Stack
  throw new StatusError('Conflict', `stack/${name} has changed since it was shown: go back and look at it again`)
}
