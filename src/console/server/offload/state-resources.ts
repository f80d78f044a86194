import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { type StateSummary, summarizeState } from '../../../stores/state/index.ts'
import type { StackResources } from '../../protocol/index.ts'
import { entryAddressOf } from './state-content.ts'

type Resources = Pick<StackResources, 'format' | 'resources' | 'total' | 'pending'>

/** What a state or an inventory has. @param limit of the resources that are listed. @throws {SyntaxError} if it is not a JSON object. */
export function resourcesIn(content: string, limit: number): Resources {
  const { format, resources, pendingOperations: pending = [] } = summaryOf(content)
  return { format, resources: resources.slice(0, limit), total: resources.length, pending }
}

type Summary = Pick<StateSummary, 'resources' | 'pendingOperations'> & { readonly format: StackResources['format'] }

function summaryOf(content: string): Summary {
  const { engine, objects } = Object(JSON.parse(content)) as { engine?: unknown; objects?: unknown }
  if (engine !== 'manifests' || !Array.isArray(objects)) return summarizeState(content)
  const resources = objects.filter(isJsonObject).map(entry => ({
    address: entryAddressOf(entry),
    ...{ type: String(entry.kind), provider: String(entry.apiVersion) },
  }))
  return { format: 'inventory', resources }
}
