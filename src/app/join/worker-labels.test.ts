import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { allowedLabels, credentialLabels, labelPolicyError, workerLabelsAnnotation } from './worker-labels.ts'

const policy = { labels: { site: 'west' }, allowLabels: ['gpu', 'disk=ssd'] }

for (const [what, requested, want] of [
  ['no requested label', undefined, { site: 'west' }],
  ['any value of an allowed key', { gpu: 'h100' }, { gpu: 'h100', site: 'west' }],
  ['the allowed value', { disk: 'ssd' }, { disk: 'ssd', site: 'west' }],
  ['a label that the token sets', { site: 'west' }, { site: 'west' }],
  ['a value that is not allowed', { disk: 'nvme' }, /does not allow label disk=nvme: it sets site=west and allows gpu, disk=ssd/],
  ['another value for a label that the token sets', { site: 'east' }, /does not allow label site=east/],
  ['an unknown key', { zone: 'a' }, /does not allow label zone=a/],
  ['an array instead of an object', ['gpu'], /labels must be an object/],
  ['a number as value', { gpu: 7 }, /label labels\.gpu/],
  ['the key __proto__', JSON.parse('{"__proto__":"x"}'), /label/],
] as [string, unknown, object | RegExp][]) {
  test(`allowedLabels() with ${what}`, () => {
    const outcome = allowedLabels(policy, requested)
    if (want instanceof RegExp) match('rejected' in outcome ? outcome.rejected : '', want)
    else deepEqual(outcome, { labels: want })
  })
}

test('allowedLabels() with a token that allows any label except that of the pool', () => {
  const any = { labels: {}, allowLabels: ['*'] }
  deepEqual(allowedLabels(any, { a: 'b' }), { labels: { a: 'b' } })
  equal('rejected' in allowedLabels(any, { 'oarlock.dev/pool': 'other' }), true)
})

test('labelPolicyError() rejects invalid labels and the label of the pool', () => {
  equal(labelPolicyError(policy), undefined)
  match(labelPolicyError({ labels: { 'a b': 'c' }, allowLabels: [] }) ?? '', /^label labels/)
  match(labelPolicyError({ labels: {}, allowLabels: ['a=b c'] }) ?? '', /^label labels/)
  match(labelPolicyError({ labels: {}, allowLabels: ['oarlock.dev/pool'] }) ?? '', /the pool of the token sets the label/)
})

const credentialWith = (annotations: Record<string, string> | undefined) => ({
  metadata: { name: 'worker-credential-w1', annotations } as never,
})

test('credentialLabels() returns the labels of the annotation, and none without it', () => {
  deepEqual(credentialLabels(credentialWith({ [workerLabelsAnnotation]: '{"gpu":"a100"}' })), { gpu: 'a100' })
  for (const secret of [undefined, credentialWith(undefined), credentialWith({ other: '{' })]) deepEqual(credentialLabels(secret), {})
})

for (const text of ['', '{', 'null', '[]', '"gpu"', '7', '{"gpu":7}', '{"gpu":null}', '{"a b":"c"}', '{"gpu":"a b"}']) {
  test(`credentialLabels() returns undefined if the annotation is ${JSON.stringify(text)}`, () =>
    equal(credentialLabels(credentialWith({ [workerLabelsAnnotation]: text })), undefined))
}
