import { listPendingOperations, type PendingOperations } from '../../api/index.ts'
import type { StateCheck } from '../../controllers/stack/index.ts'
import { decideStateError, formatStateError, type StateFacts, type StateStore } from '../../stores/state/index.ts'

/** What the stores know of a state, as the stack controller reads it: `expected` is the version that the last Run left. */
export function stateCheckOf(expected: number, { newest, userLock, pulumi }: StateFacts): StateCheck {
  const error = decideStateError(expected, newest)
  return {
    ...(pulumi?.unreadable !== undefined && { error: { reason: 'JournalUnreadable', message: pulumi.unreadable } }),
    ...(error && { error: { reason: error.reason, message: formatStateError(error) } }),
    ...(userLock && { lock: userLock }),
  }
}

/** The same for stores in this process, without reading the file where nothing in it can matter. */
export async function checkStoredState(
  store: Pick<StateStore, 'mayHaveFacts' | 'facts'>,
  uid: string,
  expected: number,
): Promise<StateCheck> {
  return expected === 0 && !store.mayHaveFacts(uid) ? {} : stateCheckOf(expected, await store.facts(uid))
}

/** What a Run lists of the operations that were interrupted. */
export const pendingOperationsOf = ({ pulumi }: StateFacts): PendingOperations | undefined =>
  listPendingOperations(pulumi?.pending ?? [], pulumi?.pendingOperations)
