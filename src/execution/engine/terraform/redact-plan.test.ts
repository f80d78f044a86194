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

test('a redacted plan has no sensitive variable, attribute or output', () => {
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

test('hides values in nested modules, drift, deferred changes and actions', () => {
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
    action_invocations: [{ config_values: { p: 'SECRET' }, config_sensitive: { p: true } }],
  }
  doesNotMatch(JSON.stringify(redactPlan(plan, [])), /SECRET/)
})

test('has no configuration, because nothing marks the constant values of sensitive attributes there', () => {
  const change = { actions: ['create'], before: null, after: { password: 'hunter22x' }, after_sensitive: { password: true } }
  const plan: Json = {
    resource_changes: [{ change }],
    configuration: {
      provider_config: { db: { expressions: { password: { constant_value: 'hunter22x' } } } },
      root_module: {
        resources: [{ expressions: { password: { constant_value: 'hunter22x' } } }],
        module_calls: { m: { expressions: { password: { constant_value: 'hunter22x' } } } },
        variables: { password: { default: 'hunter22x' } },
      },
    },
  }
  const redacted = redactPlan(plan, [])
  deepEqual(redacted, {
    resource_changes: [{ change: { ...change, after: { password: '(sensitive value)' } } }],
  })
})
