import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { FilterError, filterFields, matchesFilter, parseFilter } from './filter.ts'

const rows = [
  { name: 'web', state: 'Failed', engine: 'helm', message: 'no such host', labels: { team: 'Web', tier: 'front' } },
  { name: 'web-cache', state: 'Drifted', engine: 'terraform', tenant: 'a', labels: { team: 'web' } },
  { name: 'mail', state: 'Ready', engine: 'helm', tenant: 'b', suspended: true, message: 'name: value', labels: {} },
]

for (const [text, want] of [
  ['', ['web', 'web-cache', 'mail']],
  ['state:failed,drifted', ['web', 'web-cache']],
  ['state:FAILED STATE:failed', ['web']],
  ['state:failed engine:terraform', []],
  ['-engine:helm', ['web-cache']],
  ['-state:failed,drifted', ['mail']],
  ['state:fail*', ['web']],
  ['tenant:*', ['web', 'web-cache', 'mail']],
  ['name:web*', ['web', 'web-cache']],
  ['name:*c*e', ['web-cache']],
  ['name:w*w*b', []],
  ['label:team=web', ['web', 'web-cache']],
  ['label:t*=front', ['web']],
  ['-label:team', ['mail']],
  ['suspended:true', ['mail']],
  ['CACHE', ['web-cache']],
  ['"such host"', ['web']],
  ['such web', ['web']],
  ['"name: value"', ['mail']],
] as const)
  test(`the filter ${JSON.stringify(text)} matches ${want.join(', ') || 'nothing'}`, () => {
    const filter = parseFilter(text, filterFields.stacks)
    deepEqual(
      rows.filter(row => matchesFilter(row, filter)).map(({ name }) => name),
      want,
    )
  })

for (const [text, message] of [
  ['web color:red', /^unknown field "color" at 5: use namespace, name, /],
  ['state:', /^"state:" at 1 has an empty value$/],
  ['state:a,', /^"state:" at 1 has an empty value$/],
  ['state:faild', /^unknown state "faild" at 1: use Pending, Working, Failing, Ready, /],
  ['web -state:ready,x*', /^unknown state "x\*" at 5: use /],
  ['suspended:yes', /^unknown suspended "yes" at 1: use true, false$/],
  ['a "b', /^the quote at 3 does not end$/],
] as const)
  test(`the filter ${JSON.stringify(text)} is rejected with the place`, () => {
    throws(
      () => parseFilter(text, filterFields.stacks),
      (error: Error) => error instanceof FilterError && message.test(error.message),
    )
  })
