import { randomBytes } from 'node:crypto'
import {
  annotations,
  type Blocker,
  formatBlocker,
  formatRunRequest,
  isShown,
  type RequestType,
  runBlocker,
  type ShownVersion,
  type Stack,
  stackResource,
} from '../../api/index.ts'
import { type Client, patchIf } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { readReportedState } from './read-blockers.ts'

/**
 * Requests a Run of the Stack as it is now. Returns the value that `status.handledRequest` of the Stack has once the Run exists.
 * @param shown the Stack that the user has seen; undefined if none was shown, as in an action on many.
 * @throws {StatusError} Conflict with the reason if no Run would be executed, or another one than the user expects.
 */
export async function requestRun(
  client: Client,
  { namespace, name }: { readonly namespace: string | undefined; readonly name: string },
  type: RequestType,
  shown: ShownVersion | undefined,
): Promise<string> {
  const request = formatRunRequest(type, randomBytes(5).toString('hex'), undefined)
  const expectRunnable = async (stack: Stack) => {
    const blocker = runBlocker(stack, { type }, await readReportedState(client, stack)) ?? deletionBlocker(stack, type, shown)
    if (blocker) throw new StatusError('Conflict', `no Run of stack/${name} was requested: ${formatBlocker(blocker)}`)
    return true
  }
  await patchIf(
    client.resource(stackResource),
    { namespace, name },
    async stack => await expectRunnable(stack as Stack),
    () => ({ metadata: { annotations: { [annotations.requestedRun]: request } } }),
  )
  return request
}

/** During its deletion a Run destroys the resources of the Stack: the page states that to the user who has seen this deletion. */
function deletionBlocker(stack: Stack, type: RequestType, shown: ShownVersion | undefined): Blocker | undefined {
  if (stack.metadata.deletionTimestamp === undefined || type !== 'apply' || (shown && isShown(stack, shown))) return undefined
  return { text: 'the Stack is being deleted', remedy: 'look at its page, which states what a Run does then, and request it there' }
}
