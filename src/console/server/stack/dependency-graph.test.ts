import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { dependencyGraph } from './dependency-graph.ts'

const stack = (needs: readonly string[] = [], outputsOf: readonly string[] = []) => ({
  spec: { dependsOn: needs.map(name => ({ name })), variablesFrom: outputsOf.map(name => ({ stackRef: { name } })) },
  state: 'Ready' as const,
})
const layers = (graph: ReturnType<typeof dependencyGraph>) => Object.fromEntries(graph.nodes.map(({ name, layer }) => [name, layer]))

test('what is needed is in lower layers, what needs it in higher ones, by the longest path', () => {
  const stacks = new Map([
    ['network', stack()],
    ['cluster', stack([], ['network'])],
    ['app', stack(['network'], ['cluster'])],
    ['tests', stack(['app'])],
    ['other', stack()],
  ])
  deepEqual(layers(dependencyGraph('app', stacks)), { network: -2, cluster: -1, app: 0, tests: 1 })
  deepEqual(layers(dependencyGraph('network', stacks)), { network: 0, cluster: 1, app: 2, tests: 3 })
  deepEqual(dependencyGraph('cluster', stacks).edges, [
    { from: 'app', to: 'cluster', via: ['outputs'] },
    { from: 'app', to: 'network', via: ['dependsOn'] },
    { from: 'cluster', to: 'network', via: ['outputs'] },
    { from: 'tests', to: 'app', via: ['dependsOn'] },
  ])
})

test('a Stack that does not exist, or is not visible, is named with the reason', () => {
  deepEqual(dependencyGraph('a', new Map([['a', stack(['gone'])]])).nodes, [
    { name: 'gone', layer: -1, problem: 'it does not exist' },
    { name: 'a', layer: 0, state: 'Ready' },
  ])
})

test('a cycle ends, and all of it is shown', () => {
  const stacks = new Map([
    ['a', stack(['b'])],
    ['b', stack(['c'])],
    ['c', stack(['a', 'b'])],
  ])
  const graph = dependencyGraph('a', stacks)
  deepEqual(graph.nodes.map(({ name }) => name).sort(), ['a', 'b', 'c'])
  equal(graph.edges.length, 4)
})

test('of many Stacks the nearest are shown, and how many more there are', () => {
  const stacks = new Map([['hub', stack()], ...Array.from({ length: 150 }, (_, index) => [`s${index}`, stack(['hub'])] as const)])
  const { nodes, more } = dependencyGraph('hub', stacks)
  equal(nodes.length, 100)
  equal(more, 51)
})
