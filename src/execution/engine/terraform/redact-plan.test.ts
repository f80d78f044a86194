import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Json } from '../../../kubernetes/object/index.ts'
import { hideSensitive } from '../hide-sensitive.ts'
import { redactPlan } from './redact-plan.ts'

const fixture = (name: string): Json => JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), 'utf8'))

test('hides sensitive leaves and nothing else', () => {
  const value = { user: 'bob', keys: ['a', { secret: 'b', public: 'c' }], all: { x: 1 } }
  const marks = { keys: [false, { secret: true }], all: true }
  deepEqual(hideSensitive(value, marks), {
    user: 'bob',
    keys: ['a', { secret: '(sensitive value)', public: 'c' }],
    all: '(sensitive value)',
  })
  deepEqual(hideSensitive(value, {}), value)
  deepEqual(hideSensitive(value, false), value)
})

test('hides a value whose marks have another structure', () => {
  equal(hideSensitive(['a', 'b'], { 0: true }), '(sensitive value)')
  equal(hideSensitive('a', [true]), '(sensitive value)')
})

test('a redacted plan has no sensitive variable, attribute, output or default', () => {
  for (const name of ['plan-create', 'plan-destroy']) {
    const text = JSON.stringify(redactPlan(fixture(name), []))
    match(JSON.stringify(fixture(name)), name === 'plan-create' ? /hunter2secret/ : /hunter/)
    // In the state, terraform_data.secret.output is a copy of the variable that nothing marks.
    if (name === 'plan-create') doesNotMatch(text, /hunter2secret/)
    match(text, /"password":\{"value":"\(sensitive value\)"\}/)
  }
})

test('hides variables that are secret although the configuration does not mark them', () => {
  const plan: Json = { variables: { a: { value: 'one' }, b: { value: 'two' } }, configuration: { root_module: { variables: { b: {} } } } }
  deepEqual((redactPlan(plan, ['b']) as { variables: object }).variables, { a: { value: 'one' }, b: { value: '(sensitive value)' } })
})

test('hides values in nested modules, drift, deferred changes and defaults', () => {
  const change = {
    actions: ['update'],
    before: { p: 'SECRET', q: 1 },
    before_sensitive: { p: true },
    after: { p: 'SECRET' },
    after_sensitive: { p: true },
  }
  const plan: Json = {
    resource_drift: [{ change }],
    deferred_changes: [{ resource_change: { change } }],
    planned_values: { root_module: { child_modules: [{ resources: [{ values: { p: 'SECRET' }, sensitive_values: { p: true } }] }] } },
    prior_state: { values: { outputs: { o: { sensitive: true, value: 'SECRET' } } } },
    configuration: { root_module: { variables: { v: { default: 'SECRET', sensitive: true } } } },
  }
  doesNotMatch(JSON.stringify(redactPlan(plan, [])), /SECRET/)
})
