import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { allowedLabels, labelPolicyError } from './worker-labels.ts'

const terms = { labels: { site: 'west' }, allowLabels: ['gpu', 'disk=ssd'] }

for (const [what, wanted, got] of [
  ['nothing is asked for', undefined, { site: 'west' }],
  ['any value of an allowed key', { gpu: 'h100' }, { gpu: 'h100', site: 'west' }],
  ['the allowed value', { disk: 'ssd' }, { disk: 'ssd', site: 'west' }],
  ['one that it has anyhow', { site: 'west' }, { site: 'west' }],
  ['a value that is not allowed', { disk: 'nvme' }, /does not allow the label disk=nvme; it gives site=west and allows gpu, disk=ssd/],
  ['another value than the given one', { site: 'east' }, /does not allow the label site=east/],
  ['a key that nobody speaks of', { zone: 'a' }, /does not allow the label zone=a/],
  ['no object', ['gpu'], /labels must be an object/],
  ['no label', { gpu: 7 }, /label labels\.gpu/],
  ['the prototype', JSON.parse('{"__proto__":"x"}'), /label/],
] as [string, unknown, object | RegExp][]) {
  test(`labels of a worker: ${what}`, () => {
    const outcome = allowedLabels(terms, wanted)
    if (got instanceof RegExp) match('refused' in outcome ? outcome.refused : '', got)
    else deepEqual(outcome, { labels: got })
  })
}

test('labels of a worker: a token that allows any, but for the one of the pool', () => {
  const any = { labels: {}, allowLabels: ['*'] }
  deepEqual(allowedLabels(any, { a: 'b' }), { labels: { a: 'b' } })
  equal('refused' in allowedLabels(any, { 'oarlock.dev/pool': 'other' }), true)
})

test('terms that cannot be are refused when the token is made', () => {
  equal(labelPolicyError(terms), undefined)
  match(labelPolicyError({ labels: { 'a b': 'c' }, allowLabels: [] }) ?? '', /^label labels/)
  match(labelPolicyError({ labels: {}, allowLabels: ['a=b c'] }) ?? '', /^label labels/)
  match(labelPolicyError({ labels: {}, allowLabels: ['oarlock.dev/pool'] }) ?? '', /is set by the pool of the token/)
})
