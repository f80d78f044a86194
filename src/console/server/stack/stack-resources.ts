import { type StateSummary, summarizeState } from '../../../stores/state/index.ts'
import type { StackResources } from '../../protocol/index.ts'
import { readStack, type StackRequest } from './stack-request.ts'
import { currentOf } from './state-versions.ts'
import { StoredState, stateKindOf } from './stored-state.ts'

const maxResources = 5_000
const nothing = { resources: [], total: 0, pending: [] } as const

/** What the current state, or the inventory, of a Stack has. */
export async function stackResources(request: StackRequest): Promise<StackResources> {
  const stack = await readStack(request)
  if (stack.spec.state === 'External') return { format: 'external', ...nothing }
  const state = new StoredState(request)
  const current = currentOf(await state.versions(), stateKindOf(stack))
  if (!current || current.size === 0) return { format: 'none', ...nothing }
  const { format, resources, pendingOperations = [] } = summaryOf(await state.read(current))
  return {
    ...{ format, version: current.version, author: current.author, createdMs: current.createdMs },
    ...{ resources: resources.slice(0, maxResources), total: resources.length, pending: pendingOperations },
  }
}

type Summary = Pick<StateSummary, 'resources' | 'pendingOperations'> & { readonly format: StackResources['format'] }

function summaryOf(content: string): Summary {
  const { engine, objects } = JSON.parse(content) as { engine?: unknown; objects?: unknown }
  if (engine !== 'manifests' || !Array.isArray(objects)) return summarizeState(content)
  const resources = (objects as { apiVersion: string; kind: string; namespace?: string; name: string }[]).map(
    ({ apiVersion, kind, namespace, name }) => ({
      address: `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`,
      ...{ type: kind, provider: apiVersion },
    }),
  )
  return { format: 'inventory', resources }
}
