import type { StackResources } from '../../protocol/index.ts'
import { readStack, type StackRequest } from './stack-request.ts'
import { currentOf } from './state-versions.ts'
import { StoredState, sizeOf, stateKindOf } from './stored-state.ts'

const maxResources = 5_000
const nothing = { resources: [], total: 0, pending: [] } as const

/** What the current state, or the inventory, of a Stack has. */
export async function stackResources(request: StackRequest): Promise<StackResources> {
  const stack = await readStack(request)
  if (stack.spec.state === 'External') return { format: 'external', ...nothing }
  const state = new StoredState(request)
  const current = currentOf(await state.versions(), stateKindOf(stack))
  if (!current || current.size === 0) return { format: 'none', ...nothing }
  const { version, author, createdMs } = current
  const found = await request.tasks.withStates(
    sizeOf(current),
    async run => await run('resourcesIn', await state.read(current), maxResources),
  )
  return { ...found, version, author, createdMs }
}
