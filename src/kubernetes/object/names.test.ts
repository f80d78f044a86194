import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotationErrors, finalizerErrors, labelErrors, nameErrors, ownerReferenceErrors, qualifiedNameErrors } from './index.ts'

for (const [value, rule, want] of [
  ['a', 'dns1123Subdomain', true],
  ['a-b.c0', 'dns1123Subdomain', true],
  ['', 'dns1123Subdomain', false],
  ['A', 'dns1123Subdomain', false],
  ['a..b', 'dns1123Subdomain', false],
  ['-a', 'dns1123Subdomain', false],
  ['a\n', 'dns1123Subdomain', false],
  ['a'.repeat(253), 'dns1123Subdomain', true],
  ['a'.repeat(254), 'dns1123Subdomain', false],
  ['0a', 'dns1123Label', true],
  ['a.b', 'dns1123Label', false],
  ['a'.repeat(64), 'dns1123Label', false],
  ['0a', 'dns1035Label', false],
  ['a0', 'dns1035Label', true],
  ['system:node', 'pathSegment', true],
  ['..', 'pathSegment', false],
  ['a/b', 'pathSegment', false],
  ['a%b', 'pathSegment', false],
] as const) {
  test(`${JSON.stringify(value).slice(0, 20)} is ${want ? 'a valid' : 'not a valid'} ${rule}`, () =>
    assert.equal(nameErrors(value, rule).length === 0, want))
}

test('words errors as Kubernetes does', () => {
  assert.deepEqual(nameErrors('A', 'dns1123Subdomain'), [
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  ])
  assert.deepEqual(nameErrors('a.b', 'dns1123Label'), ['must not contain dots'])
  assert.deepEqual(qualifiedNameErrors('/a'), ['prefix part must be non-empty'])
  assert.match(qualifiedNameErrors('a b')[0]!, /^name part must consist .* \(e\.g\. 'MyName', {2}or 'my\.name', {2}or '123-abc', regex/)
})

for (const [name, causes, fields] of [
  ['valid labels', labelErrors({ a: 'b', 'x.io/c': '' }, 'metadata.labels'), []],
  [
    'invalid labels',
    labelErrors({ 'a b': 'c', d: 'e f', g: 1 }, 'metadata.labels'),
    ['metadata.labels', 'metadata.labels', 'metadata.labels.g'],
  ],
  ['labels that are a list', labelErrors([], 'metadata.labels'), ['metadata.labels']],
  ['annotations of any text', annotationErrors({ 'X.io/A': ' {}\n' }, 'metadata.annotations'), []],
  ['too many annotations', annotationErrors({ a: 'x'.repeat(256 * 1024) }, 'metadata.annotations'), ['metadata.annotations']],
  ['valid finalizers', finalizerErrors(['foregroundDeletion', 'oarlock.dev/destroy'], 'metadata.finalizers'), []],
  [
    'invalid finalizers',
    finalizerErrors(['a b', 1, 'orphan', 'foregroundDeletion'], 'metadata.finalizers'),
    ['metadata.finalizers', 'metadata.finalizers[0]', 'metadata.finalizers[1]', 'metadata.finalizers'],
  ],
  [
    'a valid owner',
    ownerReferenceErrors([{ apiVersion: 'v1', kind: 'A', name: 'a', uid: '1', controller: true }], 'metadata.ownerReferences'),
    [],
  ],
  ['an incomplete owner', ownerReferenceErrors([{ apiVersion: 'x/', kind: '', name: 'a' }], 'o'), ['o.apiVersion', 'o.kind', 'o.uid']],
  [
    'two controllers',
    ownerReferenceErrors(
      ['a', 'b'].map(name => ({ apiVersion: 'v1', kind: 'A', name, uid: name, controller: true })),
      'o',
    ),
    ['o'],
  ],
  ['an Event as owner', ownerReferenceErrors([{ apiVersion: 'v1', kind: 'Event', name: 'a', uid: '1' }], 'o'), ['o']],
] as const) {
  test(`validates metadata: ${name}`, () =>
    assert.deepEqual(
      causes.map(cause => cause.field),
      fields,
    ))
}
