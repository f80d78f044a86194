import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack, StackSpec } from '../../api/index.ts'
import { dependentsOf, findCycle } from './dependencies.ts'

const graph = (edges: string): ((name: string) => StackSpec | undefined) => {
  const specs = new Map<string, StackSpec>()
  for (const edge of edges.split(' ')) {
    const [from = '', to = ''] = edge.split('>')
    const dependsOn = to ? to.split(',').map(name => ({ name })) : []
    specs.set(from, { engine: 'terraform', source: { inline: { files: {} } }, dependsOn })
  }
  return name => specs.get(name)
}

for (const [edges, name, want] of [
  ['a>b b>', 'a', undefined],
  ['a>a', 'a', 'a a'],
  ['a>b b>a', 'a', 'a b a'],
  ['a>b b>a', 'b', 'b a b'],
  ['a>b b>c c>a', 'b', 'b c a b'],
  ['d>a a>b b>a', 'd', undefined],
  ['a>missing', 'a', undefined],
  ['a>b,c b>c c>a', 'a', 'a c a'],
  ['a>b,c b>d c>d d>', 'a', undefined],
] as const) {
  test(`findCycle of ${name} in ${edges} is ${want ?? 'undefined'}`, () => assert.equal(findCycle(name, graph(edges))?.join(' '), want))
}

test('findCycle traverses a chain of 5,000 Stacks without recursion', () => {
  const edges = Array.from({ length: 5_000 }, (_, i) => `s${i}>s${i + 1}`)
  assert.equal(findCycle('s0', graph(edges.join(' '))), undefined)
})

const stacksOf = (edges: string, deleting: string) => {
  const specOf = graph(edges)
  return edges.split(' ').map(edge => {
    const [name = ''] = edge.split('>')
    const deletion = name === deleting ? { deletionTimestamp: '2026-06-01T10:00:00Z' } : {}
    return { metadata: { name, uid: name, ...deletion }, spec: specOf(name) } as unknown as Stack
  })
}

for (const [what, edges, deleting, together, want] of [
  ['those that name it', 'a> b>a c>b d>a', '', [], ['b', 'd']],
  ['none that is being deleted', 'a> b>a d>a', 'b', [], ['d']],
  ['none that is destroyed together with it', 'a> b>a d>a', '', ['b', 'd'], []],
  ['none of its own cycle', 'a>b b>a d>a', '', [], ['d']],
] as const)
  test(`the destruction of a Stack waits for ${what}`, () => {
    const stacks = stacksOf(edges, deleting)
    assert.deepEqual(dependentsOf(stacks[0]!, stacks, new Set(together)), want)
  })
