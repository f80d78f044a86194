import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { layoutGraph, nodeHeight, nodeWidth } from './graph-layout.ts'

const node = (name: string, layer: number) => ({ name, layer })
const edge = (from: string, to: string) => ({ from, to, via: ['outputs'] as const })

test('each layer is a column, and no two Stacks overlap', () => {
  const nodes = [node('net', -2), node('dns', -2), node('cluster', -1), node('app', 0), node('a', 1), node('b', 1), node('c', 1)]
  const layout = layoutGraph({ nodes, edges: [edge('cluster', 'net'), edge('app', 'cluster'), edge('a', 'app'), edge('app', 'dns')] })
  const placed = [...layout.nodes.values()]
  deepEqual([...new Set(placed.map(({ x }) => x))].length, 4)
  for (const [index, one] of placed.entries())
    for (const other of placed.slice(index + 1))
      ok(Math.abs(one.x - other.x) >= nodeWidth || Math.abs(one.y - other.y) >= nodeHeight, `${one.name} and ${other.name}`)
  for (const { x, y } of placed) ok(x >= 0 && y >= 0 && x + nodeWidth <= layout.width && y + nodeHeight <= layout.height)
  equal(layout.edges.length, 4)
})

test('Stacks are in the order of what they need, so that edges do not cross', () => {
  const nodes = [node('x', -1), node('y', -1), node('a', 0), node('b', 0)]
  const { nodes: placed } = layoutGraph({ nodes, edges: [edge('a', 'y'), edge('b', 'x')] })
  ok((placed.get('b')?.y ?? 0) < (placed.get('a')?.y ?? 0))
})
