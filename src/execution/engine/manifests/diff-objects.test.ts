import { deepEqual, doesNotMatch, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { diffObjects } from './diff-objects.ts'

const identity = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'web' }
const lines = (diff: { text: string }) => diff.text.split('\n')

test('shows every field of a new object and every field that changes, in full', () => {
  const long = 'x'.repeat(100)
  const before = { data: { a: '1', b: 'gone', 'odd.key': long }, list: [{ p: 1 }, { p: 2 }] }
  const after = { data: { a: '2', c: 'new', 'odd.key': `${long}y` }, list: [{ p: 1 }, { p: 3 }, { p: 4 }] }
  deepEqual(lines(diffObjects([{ action: 'change', ...identity, before, after }])), [
    '~ ConfigMap shop/web',
    '    ~ data.a: "1" → "2"',
    '    - data.b: "gone"',
    '    + data.c: "new"',
    `    ~ data["odd.key"]: "${long}" → "${long}y"`,
    '    ~ list[1].p: 2 → 3',
    '    + list[2]: {"p":4}',
  ])
  deepEqual(lines(diffObjects([{ action: 'add', ...identity, after: { kind: 'ConfigMap', data: { a: '1' } } }])), [
    '+ ConfigMap shop/web',
    '    + kind: ConfigMap',
    '    + data:',
    '    +   a: "1"',
  ])
  equal(diffObjects([{ action: 'delete', ...identity }]).text, '- ConfigMap shop/web')
})

test('shows the lines of a text that change, with those around them', () => {
  const before = { data: { f: 'a\nb\nc\nd\ne\nf\ng\nh' } }
  const after = { data: { f: 'a\nb\nc\nd\nE\nf\ng\nh' } }
  deepEqual(lines(diffObjects([{ action: 'change', ...identity, before, after }])), [
    '~ ConfigMap shop/web',
    '    ~ data.f, from line 2:',
    '          b',
    '          c',
    '          d',
    '        - e',
    '        + E',
    '          f',
    '          g',
    '          h',
  ])
  // A repeated line at the border of the change belongs to one side only.
  const repeated = diffObjects([{ action: 'change', ...identity, before: { t: 'x\nx' }, after: { t: 'x\nx\nx' } }])
  deepEqual(lines(repeated).slice(2), ['          x', '          x', '        + x'])
})

test('hides the data of Secrets, also in the copy that kubectl keeps, and shows which keys change', () => {
  const secret = (password: string) => ({
    metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': `{"data":{"password":"${password}"}}` } },
    data: { password, same: 'hidden-too' },
  })
  const changes = [
    { action: 'change' as const, ...identity, kind: 'Secret', before: secret('old-one'), after: secret('new-one') },
    { action: 'change' as const, ...identity, kind: 'Secret', before: secret('old-one'), after: { data: { other: 'new-one' } } },
    { action: 'change' as const, ...identity, kind: 'Secret', before: secret('old-one'), after: {} },
    { action: 'add' as const, ...identity, kind: 'Secret', after: { ...secret('new-one'), stringData: { x: 'new-one' } } },
  ]
  const diff = diffObjects(changes)
  doesNotMatch(JSON.stringify(diff), /old-one|new-one|hidden-too/)
  deepEqual(lines(diff).slice(0, 3), [
    '~ Secret shop/web',
    '    ~ data.password: (sensitive value) → (sensitive value)',
    '    ~ metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]: (sensitive value) → (sensitive value)',
  ])
})
