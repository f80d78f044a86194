import { ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { attributesOf } from './resource-attributes.ts'
import { diffStates } from './state-diff.ts'

/** A value of an attribute, and which parts of it the engine marks. `typed`: stored with its type, which is no step of a path. */
type Node = { readonly isMarked: boolean } & (
  | { readonly kind: 'leaf' }
  | { readonly kind: 'list'; readonly items: readonly Node[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: string, item: Node])[] }
  | { readonly kind: 'typed'; readonly item: Node }
)

const isMarked = fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) })
const key = fc.constantFrom('a', 'b', 'k.1', '0', '__proto__', 'constructor', '')
const { node } = fc.letrec<{ node: Node }>(tie => ({
  node: fc.oneof(
    { maxDepth: 5 },
    fc.record({ kind: fc.constant('leaf' as const), isMarked }),
    fc.record({ kind: fc.constant('list' as const), isMarked, items: fc.array(tie('node'), { maxLength: 4 }) }),
    fc.record({
      ...{ kind: fc.constant('map' as const), isMarked },
      entries: fc.uniqueArray(fc.tuple(key, tie('node')), { maxLength: 4, selector: ([name]) => name }),
    }),
    fc.record({ kind: fc.constant('typed' as const), isMarked, item: tie('node') }),
  ),
}))
const resource = fc.array(node, { minLength: 1, maxLength: 5 })

type Step = { readonly type: string; readonly value: unknown }

/** A state with these attributes, each of whose leaves is a text of its own. */
function stateOf(nodes: readonly Node[], prefix: string) {
  const paths: Step[][] = []
  const [marked, unmarked]: [string[], string[]] = [[], []]
  const build = (of: Node, path: readonly Step[], isHidden: boolean): unknown => {
    if (of.isMarked) paths.push([...path])
    const isSensitive = isHidden || of.isMarked
    switch (of.kind) {
      case 'leaf': {
        const text = `${prefix}-${marked.length + unmarked.length}-`
        ;(isSensitive ? marked : unmarked).push(text)
        return text
      }
      case 'list':
        return of.items.map((item, index) =>
          build(item, [...path, { type: 'index', value: { value: index, type: 'number' } }], isSensitive),
        )
      case 'map':
        return Object.fromEntries(
          of.entries.map(([name, item]) => [name, build(item, [...path, { type: 'get_attr', value: name }], isSensitive)]),
        )
      case 'typed':
        return { value: build(of.item, path, isSensitive), type: 'dynamic' }
    }
  }
  const attributes = Object.fromEntries(
    nodes.map((each, index) => [`x${index}`, build(each, [{ type: 'get_attr', value: `x${index}` }], false)]),
  )
  const text = JSON.stringify({
    ...{ version: 4, terraform_version: '1.12.6', serial: 1, lineage: 'a', outputs: {} },
    resources: [{ mode: 'managed', type: 'a', name: 'b', instances: [{ attributes, sensitive_attributes: paths }] }],
  })
  return { text, marked, unmarked }
}

test('of random attributes no answer has a text that is marked, and each one that is not is shown', () => {
  fc.assert(
    fc.property(resource, nodes => {
      const [old, now] = [stateOf(nodes, 'old'), stateOf(nodes, 'new')]
      const shown = JSON.stringify(attributesOf(now.text, 'a.b'))
      const diff = JSON.stringify(diffStates(old.text, now.text, { withValues: true }))
      for (const text of now.marked) ok(!shown.includes(text) && !diff.includes(text), `${text} is shown`)
      for (const text of old.marked) ok(!diff.includes(text), `${text} is shown`)
      for (const text of now.unmarked) ok(shown.includes(text), `${text} is hidden`)
    }),
    { numRuns: 2_000 },
  )
})
