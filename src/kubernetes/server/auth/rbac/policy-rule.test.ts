import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { describeRules, type PolicyRule, type RuleRequest, ruleAllows, uncoveredRules } from './policy-rule.ts'

const pods = (verbs: string[], more: Partial<PolicyRule> = {}): PolicyRule => ({ verbs, apiGroups: [''], resources: ['pods'], ...more })
const ask = (verb: string, more: Partial<RuleRequest> = {}): RuleRequest => ({ verb, group: '', resource: 'pods', ...more })
const path = (verb: string, at: string): RuleRequest => ({ verb, group: '', resource: '', path: at })

for (const { name, rule, request, want } of [
  { name: 'a verb that is named', rule: pods(['get']), request: ask('get'), want: true },
  { name: 'another verb', rule: pods(['get']), request: ask('list'), want: false },
  { name: 'every verb', rule: pods(['*']), request: ask('impersonate'), want: true },
  { name: 'another group', rule: pods(['*'], { apiGroups: ['apps'] }), request: ask('get'), want: false },
  { name: 'every group', rule: pods(['*'], { apiGroups: ['*'] }), request: ask('get', { group: 'x.y' }), want: true },
  { name: 'a subresource is not its resource', rule: pods(['*']), request: ask('get', { subresource: 'log' }), want: false },
  {
    name: 'a subresource that is named',
    rule: pods(['*'], { resources: ['pods/log'] }),
    request: ask('get', { subresource: 'log' }),
    want: true,
  },
  {
    name: 'a subresource of everything',
    rule: pods(['*'], { resources: ['*/log'] }),
    request: ask('get', { subresource: 'log' }),
    want: true,
  },
  { name: 'which is not everything', rule: pods(['*'], { resources: ['*/log'] }), request: ask('get'), want: false },
  {
    name: 'every resource and subresource',
    rule: pods(['*'], { resources: ['*'] }),
    request: ask('get', { subresource: 'log' }),
    want: true,
  },
  { name: 'a name that is named', rule: pods(['get'], { resourceNames: ['a'] }), request: ask('get', { name: 'a' }), want: true },
  { name: 'another name', rule: pods(['get'], { resourceNames: ['a'] }), request: ask('get', { name: 'b' }), want: false },
  { name: 'no name', rule: pods(['list'], { resourceNames: ['a'] }), request: ask('list'), want: false },
  {
    name: 'a path is not a resource',
    rule: pods(['*'], { apiGroups: ['*'], resources: ['*'] }),
    request: path('get', '/metrics'),
    want: false,
  },
  { name: 'a path', rule: { verbs: ['get'], nonResourceURLs: ['/metrics'] }, request: path('get', '/metrics'), want: true },
  { name: 'below a path', rule: { verbs: ['get'], nonResourceURLs: ['/api/*'] }, request: path('get', '/api/v1'), want: true },
  { name: 'not the path itself', rule: { verbs: ['get'], nonResourceURLs: ['/api/*'] }, request: path('get', '/api'), want: false },
  { name: 'a resource is not a path', rule: { verbs: ['*'], nonResourceURLs: ['*'] }, request: ask('get'), want: false },
]) {
  test(`ruleAllows(): ${name}`, () => equal(ruleAllows(rule, request), want))
}

const some = (...values: string[]) => fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 3 })
const rules = fc.array(
  fc.record(
    {
      verbs: some('*', 'get', 'list', 'delete'),
      apiGroups: some('*', '', 'apps'),
      resources: some('*', '*/log', 'pods', 'pods/log', 'jobs'),
      resourceNames: some('a', 'b'),
    },
    { requiredKeys: ['verbs', 'apiGroups', 'resources'] },
  ),
  { maxLength: 3 },
)

test('uncoveredRules(): if all parts are covered, every allowed request is covered', () => {
  fc.assert(
    fc.property(rules, rules, (held, desired) => {
      if (uncoveredRules(held, desired).length > 0) return
      for (const verb of ['get', 'list', 'delete', 'other']) {
        for (const group of ['', 'apps', 'x']) {
          for (const resource of ['pods', 'jobs', 'x']) {
            for (const subresource of [undefined, 'log', 'x']) {
              for (const name of [undefined, 'a', 'b', 'x']) {
                const request = { verb, group, resource, subresource, name }
                const gains = desired.some(rule => ruleAllows(rule, request)) && !held.some(rule => ruleAllows(rule, request))
                equal(gains, false, JSON.stringify(request))
              }
            }
          }
        }
      }
    }),
  )
})

test('uncoveredRules(): rules cover themselves', () => {
  fc.assert(fc.property(rules, held => deepEqual(uncoveredRules(held, held), [])))
})

test('describeRules(): combines the verbs of one target', () => {
  deepEqual(describeRules(uncoveredRules([pods(['get'])], [pods(['get', 'list', 'watch']), { verbs: ['get'], nonResourceURLs: ['/x'] }])), [
    '{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}',
    '{NonResourceURLs:["/x"], Verbs:["get"]}',
  ])
})
