import { isConfirmedDeletion, type Stack } from '../../api/index.ts'
import { readHasResources } from '../../controllers/stack/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import type { Destruction } from '../protocol/index.ts'
import { readDestructionBlockers } from './read-blockers.ts'
import type { Call, Routes } from './route.ts'
import { readStack } from './stack/stack-request.ts'

export const destructionRoutes: Routes = { 'GET destructions': destructionOf }

/** What the destruction of a Stack begins with: before a plan is requested, the user reads what would keep it waiting. */
async function destructionOf(call: Call): Promise<Destruction> {
  const { path, visibility, options } = call
  const [namespace, name] = path
  if (!namespace || !name) throw new StatusError('NotFound', 'use destructions/NAMESPACE/NAME')
  const client = await call.client()
  const stack = await readStack({ client, namespace, name })
  const blockers = await readDestructionBlockers({ client, visibility, projections: options.projections }, stack)
  const { uid, generation = 0, deletionTimestamp } = stack.metadata
  const isDeleting = deletionTimestamp !== undefined
  const shown = { uid, generation, isDeleting, blockers }
  if (isDeleting) return { ...shown, isEmpty: false, ...pendingPlan(stack) }
  return { ...shown, isEmpty: blockers.length === 0 && !(await readHasResources(client, stack)) }
}

/** The plan that waits for the confirmation of a deletion. */
function pendingPlan(stack: Stack): Pick<Destruction, 'pending'> {
  const { plan } = stack.status ?? {}
  if (!plan || !isConfirmedDeletion(stack)) return {}
  const { digest, runName, add, change, destroy } = plan
  return { pending: { digest, runName, add, change, destroy } }
}
