import type { StackSpec } from '../../../api/index.ts'
import { dependencyNames } from '../../../controllers/stack/index.ts'
import { type GraphEdge, maxGraphNodes, type StackGraph, type StackState } from '../../protocol/index.ts'

export type GraphStack = { readonly spec: Pick<StackSpec, 'dependsOn' | 'variablesFrom'>; readonly state: StackState }

/**
 * What a Stack needs, directly or not, and what needs it. All are in one namespace.
 * @param stacks by name: those that the user may see. The Stack itself is among them.
 */
export function dependencyGraph(name: string, stacks: ReadonlyMap<string, GraphStack>): StackGraph {
  const needs = new Map([...stacks].map(([each, { spec }]) => [each, dependencyNames(spec as StackSpec)]))
  const neededBy = new Map<string, string[]>()
  for (const [from, names] of needs) for (const to of names) neededBy.set(to, [...(neededBy.get(to) ?? []), from])
  const upstream = layersOf(name, each => needs.get(each) ?? [])
  const downstream = layersOf(name, each => neededBy.get(each) ?? [])
  // One that is both is part of a cycle.
  const layers = new Map([
    ...[...downstream].map(([each, layer]) => [each, layer] as const),
    ...[...upstream].map(([each, layer]) => [each, -layer] as const),
  ])
  layers.set(name, 0)
  const sorted = [...layers].sort(([a, x], [b, y]) => Math.abs(x) - Math.abs(y) || (a < b ? -1 : 1))
  const shown = new Map(sorted.slice(0, maxGraphNodes))
  const edges: GraphEdge[] = []
  for (const from of shown.keys())
    for (const to of needs.get(from) ?? []) if (shown.has(to)) edges.push({ from, to, via: viaOf(stacks.get(from)?.spec, to) })
  return {
    nodes: [...shown]
      .map(([each, layer]) => {
        const state = stacks.get(each)?.state
        return { name: each, layer, ...(state === undefined ? { problem: 'it does not exist' } : { state }) }
      })
      .sort((a, b) => a.layer - b.layer || (a.name < b.name ? -1 : 1)),
    edges: edges.sort((a, b) => (`${a.from} ${a.to}` < `${b.from} ${b.to}` ? -1 : 1)),
    more: layers.size - shown.size,
  }
}

function viaOf(spec: GraphStack['spec'] | undefined, to: string): GraphEdge['via'] {
  const isListed = spec?.dependsOn?.some(({ name }) => name === to)
  const isUsed = spec?.variablesFrom?.some(({ stackRef }) => stackRef?.name === to)
  return [...(isListed ? (['dependsOn'] as const) : []), ...(isUsed ? (['outputs'] as const) : [])]
}

/** The longest path from `start` to each that is reachable: what another one leads to is in a higher layer. A cycle ends where it returns. */
function layersOf(start: string, nextOf: (name: string) => readonly string[]): Map<string, number> {
  const reachable = new Set<string>()
  const pending = [start]
  for (let name = pending.pop(); name !== undefined; name = pending.pop())
    for (const next of nextOf(name))
      if (next !== start && !reachable.has(next)) {
        reachable.add(next)
        pending.push(next)
      }
  const layers = new Map<string, number>()
  const entering = new Map([...reachable].map(name => [name, 0]))
  for (const from of [start, ...reachable])
    for (const to of new Set(nextOf(from))) if (entering.has(to)) entering.set(to, (entering.get(to) ?? 0) + 1)
  const raise = (from: string, layer: number): string[] =>
    [...new Set(nextOf(from))].filter(to => {
      if (!entering.has(to)) return false
      layers.set(to, Math.max(layers.get(to) ?? 0, layer + 1))
      entering.set(to, (entering.get(to) ?? 0) - 1)
      return entering.get(to) === 0
    })
  const ready = raise(start, 0)
  for (let name = ready.shift(); name !== undefined; name = ready.shift()) ready.push(...raise(name, layers.get(name) ?? 0))
  // Those on a cycle never become ready: one step behind what leads to them.
  for (const name of reachable) if (!layers.has(name)) layers.set(name, 1)
  return layers
}
