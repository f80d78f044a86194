import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  formatFieldSelector,
  formatLabelSelector,
  labelSelectorFromObject,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  StatusError,
} from './index.ts'

const labels = { app: 'web', tier: 'back', size: '7', 'oarlock.dev/stack': 'a' }

for (const [text, want] of [
  ['', true],
  ['app=web', true],
  ['app==web', true],
  ['app = web , tier=back', true],
  ['app=db', false],
  ['app!=db', true],
  ['app!=web', false],
  ['missing!=x', true],
  ['missing=x', false],
  ['app in (db,web)', true],
  ['app in (db)', false],
  ['app notin (db,web)', false],
  ['missing notin (a)', true],
  ['app', true],
  ['missing', false],
  ['!missing', true],
  ['!app', false],
  ['size>6', true],
  ['size>7', false],
  ['size<10', true],
  ['tier>1', false],
  ['oarlock.dev/stack=a,app in (web),!missing', true],
  ['missing in (,)', false],
  ['app in ()', "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"],
  ['app web', "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"],
  ['a,,b', "found ',', expected: identifier after ','"],
  ['=a', "found '=', expected: !, identifier, or 'end of string'"],
  ['a in x', "unable to parse requirement: found 'x' expected: '('"],
  ['a>x', "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
] as const) {
  test(`parses the label selector "${text}" as ${want}`, () => {
    if (typeof want === 'boolean') assert.equal(matchesLabels(parseLabelSelector(text), labels), want)
    else assert.throws(() => parseLabelSelector(text), new StatusError('BadRequest', want))
  })
}

test('rejects an invalid label key or value with its field', () => {
  assert.throws(() => parseLabelSelector('a/b/c=x'), /<nil>: Invalid value: "a\/b\/c": a valid label key must consist/)
  assert.throws(() => parseLabelSelector('a=-x'), /values\[0\]\[a\]: Invalid value: "-x": a valid label must be/)
  assert.throws(() => parseLabelSelector(`a=${'x'.repeat(64)}`), /must be no more than 63 bytes/)
})

test('treats names of Object.prototype as ordinary labels', () => {
  assert.equal(matchesLabels(parseLabelSelector('constructor'), {}), false)
  assert.equal(matchesLabels(parseLabelSelector('toString=a'), { toString: 'a' } as unknown as Record<string, string>), true)
})

test('a formatted selector parses back to one that selects the same objects', () => {
  const name = fc.stringMatching(/^[a-z]{1,3}$/)
  const requirement = fc.oneof(
    fc.record({ key: name, operator: fc.constantFrom('In', 'NotIn'), values: fc.uniqueArray(name, { minLength: 1, maxLength: 3 }) }),
    fc.record({ key: name, operator: fc.constantFrom('Exists', 'DoesNotExist'), values: fc.constant([] as string[]) }),
    fc.record({ key: name, operator: fc.constantFrom('Gt', 'Lt'), values: fc.nat().map(number => [String(number)]) }),
  )
  fc.assert(
    fc.property(fc.array(requirement, { maxLength: 4 }), fc.dictionary(name, name), (requirements, some) => {
      const selector = { requirements: requirements as never }
      const back = parseLabelSelector(formatLabelSelector(selector))
      assert.equal(formatLabelSelector(back).length, formatLabelSelector(selector).length)
      assert.equal(matchesLabels(back, some), matchesLabels(selector, some))
    }),
  )
})

test('the object form and the text form give the same selector', () => {
  const object = {
    matchLabels: { a: 'b' },
    matchExpressions: [
      { key: 'c', operator: 'NotIn', values: ['d', 'e'] },
      { key: 'f', operator: 'Exists' },
    ],
  }
  assert.equal(formatLabelSelector(labelSelectorFromObject(object)), 'a=b,c notin (d,e),f')
  assert.throws(
    () => labelSelectorFromObject({ matchExpressions: [{ key: 'a', operator: 'Is' }] }),
    /"Is" is not a valid label selector operator/,
  )
})

for (const [text, want] of [
  ['metadata.name=a', true],
  ['metadata.name==a,spec.x!=1', true],
  ['metadata.name!=a', false],
  ['spec.missing=', true],
  ['spec.text=a\\,b\\=c\\\\', true],
  [',', true],
  ['spec.x', "invalid selector: 'spec.x'; can't understand 'spec.x'"],
  ['spec.x=a\\b', 'invalid field selector: invalid escape sequence: \\b'],
  ['spec.x=a=b', 'invalid field selector: unescaped character in value: ='],
] as const) {
  test(`parses the field selector "${text}" as ${want}`, () => {
    const fields: Record<string, string> = { 'metadata.name': 'a', 'spec.x': '2', 'spec.text': 'a,b=c\\' }
    if (typeof want !== 'boolean') return assert.throws(() => parseFieldSelector(text), new StatusError('BadRequest', want))
    const selector = parseFieldSelector(text)
    assert.equal(
      matchesFields(selector, field => fields[field]),
      want,
    )
    assert.deepEqual(parseFieldSelector(formatFieldSelector(selector)), selector)
  })
}
