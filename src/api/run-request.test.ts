import { deepEqual, equal, match } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { engineOptionsProblem, formatRunOptions, maxAddresses, runOptionsProblem } from './run-options.ts'
import { formatRunRequest, parseRunRequest } from './run-request.ts'

describe('a request for a Run', () => {
  for (const { value, want } of [
    { value: 'plan:1', want: { type: 'plan' } },
    { value: 'refresh:1', want: { type: 'refresh' } },
    { value: 'plan-destroy:1', want: { type: 'plan-destroy' } },
    { value: 'apply:1', want: { type: 'apply' } },
    { value: '2026-11-23T00:00:00Z, please', want: { type: 'apply' } },
    { value: 'apply:1 {}', want: { type: 'apply' } },
    { value: 'apply:1 {"refresh":true}', want: { type: 'apply' } },
    { value: 'plan:1 {"refresh":false}', want: { type: 'plan', options: { refresh: false } } },
    { value: 'apply:1 {"targets":["a.b"],"replace":["c.d"]}', want: { type: 'apply', options: { targets: ['a.b'], replace: ['c.d'] } } },
    { value: 'refresh:1 {"targets":["a.b"]}', want: { type: 'refresh', options: { targets: ['a.b'] } } },
    { value: 'plna:1', want: { problem: 'its type is "plna"; allowed are plan, apply, refresh, plan-destroy' } },
    { value: 'apply:1 targets=a.b', want: { problem: 'the options after the first space are not valid JSON' } },
    { value: 'apply:1 {"targets"', want: { problem: 'the options after the first space are not valid JSON' } },
    { value: 'plan-destroy:1 {"targets":["a.b"]}', want: { problem: 'a plan of destruction has no options' } },
    {
      value: 'refresh:1 {"replace":["a.b"]}',
      want: { problem: 'a refresh replaces nothing and reads the resources: only targets are allowed' },
    },
  ])
    test(`reads ${value}`, () => deepEqual(parseRunRequest(value), want))

  test('is read as it was written', () => {
    const options = { targets: ['module.m["x y"].a.b[0]'], replace: ['a.b'], refresh: false }
    deepEqual(parseRunRequest(formatRunRequest('apply', '3', options)), { type: 'apply', options })
    equal(formatRunRequest('apply', '3', {}), 'apply:3')
    equal(formatRunOptions(options), '--target module.m["x y"].a.b[0] --replace a.b --no-refresh')
  })
})

describe('the options of a Run', () => {
  const accepted = [
    'a.b',
    'a_b.c-d',
    'a.b[0]',
    'a.b["x.y/z"]',
    'a.b["q\\"]"]',
    'module.m',
    'module.m[0].module.n["k"]',
    'module.m.data.a.b',
    'data.a.b',
    'ärger.öl',
  ]
  for (const address of accepted) test(`target ${address}`, () => equal(runOptionsProblem({ targets: [address] }), undefined))
  const rejected = [
    '',
    'a',
    '-a.b',
    'a.b.c',
    'a.b[',
    'a.b[x]',
    'a.b["k]',
    'a..b',
    'a b.c',
    'a.b\n',
    'a.b["\n"]',
    'module.',
    'a.$(b)',
    '=a.b',
  ]
  for (const address of rejected)
    test(`no target ${JSON.stringify(address)}`, () =>
      match(runOptionsProblem({ targets: [address] }) ?? '', /^targets has .* must be an address/))
  for (const address of ['module.m', 'data.a.b', 'module.m.data.a.b', 'module.m[0].module.n'])
    test(`no replacement ${address}`, () => match(runOptionsProblem({ replace: [address] }) ?? '', /of a managed resource/))
  test('replaces an instance', () => equal(runOptionsProblem({ replace: ['module.m["k"].a.b["x"]'] }), undefined))
  test('are URNs with engine pulumi, and addresses with others', () => {
    const urn = 'urn:pulumi:dev::shop::my:mod:Group$aws:s3/bucket:Bucket::the name::1'
    equal(runOptionsProblem({ targets: [urn], replace: [urn] }), undefined)
    equal(engineOptionsProblem('pulumi', { targets: [urn] }), undefined)
    equal(engineOptionsProblem('terraform', { targets: ['a.b'] }), undefined)
    match(engineOptionsProblem('pulumi', { targets: ['a.b'] }) ?? '', /engine pulumi are URNs, .* got "a\.b"/)
    match(engineOptionsProblem('opentofu', { replace: [urn] }) ?? '', /engine opentofu are addresses, .* got "urn:pulumi:dev/)
    match(engineOptionsProblem('command') ?? '', /only terraform, opentofu and pulumi do/)
    for (const wrong of ['urn:pulumi:dev::shop::t', 'urn:pulumi:dev::shop::t::*', 'urn:pulumi:dev::shop::t::a\nb'])
      match(runOptionsProblem({ targets: [wrong] }) ?? '', /must be an address/)
  })
  test('are bounded', () => {
    equal(runOptionsProblem({ targets: Array(maxAddresses).fill('a.b') }), undefined)
    equal(runOptionsProblem({ targets: Array(maxAddresses + 1).fill('a.b') }), 'targets must be a list of 1 to 64 addresses')
    equal(runOptionsProblem({ targets: [] }), 'targets must be a list of 1 to 64 addresses')
    match(runOptionsProblem({ targets: [`a.${'b'.repeat(600)}`] }) ?? '', /longer than 512 characters/)
  })
  test('are read in a moment, however they are written', () => {
    const hostile = `a.b["${'\\\\'.repeat(250)}`
    const startedMs = performance.now()
    match(runOptionsProblem({ targets: [hostile, `module.${'m.module.'.repeat(50)}`] }) ?? '', /must be an address/)
    equal(performance.now() - startedMs < 200, true)
  })
  for (const options of [[], null, 'x', { target: ['a.b'] }, { targets: 'a.b' }, { targets: [1] }, { refresh: 'no' }])
    test(`are not ${JSON.stringify(options)}`, () => equal(typeof runOptionsProblem(options), 'string'))
})
