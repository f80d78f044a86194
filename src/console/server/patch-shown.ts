import { type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, StatusError } from '../../kubernetes/object/index.ts'

/** A Stack at the version at which it was shown. */
export type ShownStack = { readonly namespace: string; readonly name: string; readonly resourceVersion: string }

/** Changes the Stack if it is still the one that was shown (invariant 11). @throws {StatusError} Conflict if it has changed since. */
export async function patchShown(client: Client, { namespace, name, resourceVersion }: ShownStack, patch: object): Promise<Stack> {
  try {
    return (await client.resource(stackResource).patch(name, patch, { type: 'merge', namespace, resourceVersion })) as Stack
  } catch (error) {
    if (!isReason(error, 'Conflict') || !/has been modified/.test(error.message)) throw error
    throw new StatusError('Conflict', `stack/${name} has changed since it was shown: go back and look at it again`)
  }
}
