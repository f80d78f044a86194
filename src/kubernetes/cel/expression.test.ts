import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cpuMs } from '../../../test/support/cpu-ms.ts'
import { withCostLimit } from '../object/cost-limit.ts'
import { compileExpression } from './expression.ts'
import { type CelType, dyn, list, map, optional, string } from './types.ts'
import { ArrayListValue, CelError, Optional, PlainMap, type Value } from './values.ts'

// Results of functions and operators, and the wording of errors, are recorded from kube-apiserver in
// test/conformance/cases/crds/rule-functions.txt and rule-definitions.txt. The tests here cover what a CRD cannot show.

function toCel(value: unknown): Value {
  if (Array.isArray(value)) return new ArrayListValue(value.map(toCel))
  if (typeof value !== 'object' || value === null) return value as Value
  const result = new PlainMap()
  for (const [key, inner] of Object.entries(value)) result.set(key, toCel(inner))
  return result
}

function evaluate(source: string, self: unknown = null, type: CelType = dyn): Value | undefined {
  const expression = compileExpression(source, new Map([['self', type]]))
  if (typeof expression === 'string') throw new TypeError(expression)
  return withCostLimit(1_000_000, () => expression.run([self instanceof Optional ? self : toCel(self)])).result
}

// Rules in use: from the CRDs of these projects and from Kubernetes' documentation.
for (const [rule, self, want] of [
  // Kubernetes' documentation
  ['self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas', { minReplicas: 0n, replicas: 1n, maxReplicas: 2n }, true],
  ["self.envars.filter(e, e.name == 'MY_ENV').all(e, e.value.matches('^[a-zA-Z]*$'))", { envars: [{ name: 'MY_ENV', value: '1' }] }, false],
  ['has(self.expired) && self.created + self.ttl < self.expired', {}, false],
  ['self.names.size() == self.details.size() && self.names.all(n, n in self.details)', { names: ['a'], details: { a: 1n } }, true],
  ['self.details.all(key, self.details[key] > 0)', { details: { a: 1n, b: 0n } }, false],
  ["type(self) == string ? self == '100%' : self == 1000", 1000n, true],
  // Gateway API
  [
    'self.all(l1, self.exists_one(l2, l1.port == l2.port && l1.protocol == l2.protocol && (has(l1.hostname) && has(l2.hostname) ? l1.hostname == l2.hostname : !has(l1.hostname) && !has(l2.hostname))))',
    [
      { port: 80n, protocol: 'HTTP' },
      { port: 80n, protocol: 'HTTP', hostname: 'a' },
    ],
    true,
  ],
  ["self.all(l, l.protocol in ['HTTP', 'TCP', 'UDP'] ? !has(l.tls) : true)", [{ protocol: 'HTTP', tls: {} }], false],
  ["self.path.type != 'Exact' || !self.path.value.contains('//')", { path: { type: 'Exact', value: '/a//b' } }, false],
  ["self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s')", '1m30s', true],
  // Crossplane
  [
    "!('*' in self.managementPolicies || 'Create' in self.managementPolicies) || has(self.forProvider.region) || (has(self.initProvider) && has(self.initProvider.region))",
    { managementPolicies: ['*'], forProvider: {} },
    false,
  ],
  ["self.mode == 'Pipeline' ? has(self.pipeline) && size(self.pipeline) > 0 : true", { mode: 'Pipeline', pipeline: [] }, false],
  // Karpenter
  ["self.all(x, (x.operator == 'Gt') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)", [{ operator: 'Gt', values: ['3'] }], true],
] as [string, unknown, boolean][]) {
  test(`${rule.slice(0, 100)} of ${JSON.stringify(self, (_, value) => (typeof value === 'bigint' ? Number(value) : value)).slice(0, 60)}`, () =>
    assert.equal(evaluate(rule, self), want))
}

test('infers types through macros, literals and optional values', () => {
  const typeIn = (source: string) => {
    const expression = compileExpression(source, new Map([['self', map(string, list(string))]]))
    return typeof expression === 'string' ? expression : expression.type
  }
  assert.deepEqual(
    [
      "self['a']",
      'self.?a',
      'self.map(k, self[k].size())',
      '[]',
      '{}',
      "{'a': [1]}",
      'self.transformMap(k, v, size(v))',
      "optional.of('a')",
    ].map(typeIn),
    [
      'list(string)',
      'optional_type(list(string))',
      'list(int)',
      'list(dyn)',
      'map(dyn, dyn)',
      'map(string, list(int))',
      'map(string, int)',
      'optional_type(string)',
    ],
  )
  assert.match(typeIn("self.a.startsWith('x')"), /found no matching overload for 'startsWith' applied to 'list\(string\)\.\(string\)'/)
})

test('evaluates an optional oldSelf', () => {
  const variables = new Map([['oldSelf', optional(string)]])
  const expression = compileExpression("oldSelf.hasValue() ? oldSelf.value() : 'none'", variables)
  assert.ok(typeof expression !== 'string')
  assert.equal(expression.run([Optional.none]), 'none')
  assert.equal(expression.run([new Optional('x')]), 'x')
})

const nest = (depth: number) => {
  let source = 'true'
  for (let index = 0; index < depth; index++) source = `self.all(x${index}, ${source})`
  return source
}
const long = 'a'.repeat(100_000)
for (const [what, source, self] of [
  ['nested loops', nest(20), Array.from({ length: 50 }, (_, index) => BigInt(index))],
  ['loops over literals', `[1,2,3,4,5,6,7,8].${'map(x, [1,2,3,4,5,6,7,8].'.repeat(30)}size()${')'.repeat(30)}.size() == 0`, null],
  ['a string that doubles', `[self]${'.map(x, x + x)'.repeat(60)}[0].size() > 0`, long],
  ['a list that doubles', `[self]${'.map(x, x + x)'.repeat(60)}.size() > 0`, ['a']],
  ['a replacement that multiplies', `self.replace('a', self).replace('a', self).size() > 0`, 'a'.repeat(5_000)],
  ['equality of lists with all', 'self.all(x, self.all(y, x == y || x != y))', Array.from({ length: 2_000 }, () => long)],
  ['suppressed errors', 'self.exists(x, self.exists(y, y.missing == 1))', Array.from({ length: 2_000 }, () => ({}))],
  ['a range', 'lists.range(9000000000000000000).size() > 0', null],
  ['a backtracking pattern', "self.matches('^(a+)+$')", `${long}b`],
  [
    'a pattern with many states',
    "self.all(x, x.matches('^[ab]*a[ab]{200}$'))",
    Array.from({ length: 5_000 }, (_, n) => `${(n * 7919).toString(2).replaceAll('0', 'a').replaceAll('1', 'b')}${'ab'.repeat(400)}`),
  ],
  ['patterns from data', 'self.all(x, self.all(y, x.matches(y)))', Array.from({ length: 1_000 }, (_, index) => `(a|b)*${index}`)],
  ['sorting', 'self.all(x, self.sortBy(y, y)[0] == 1)', Array.from({ length: 3_000 }, (_, index) => BigInt(index))],
  ['splitting', "self.all(x, x.split('').size() > 0)", Array.from({ length: 1_000 }, () => long)],
] as [string, string, unknown][]) {
  test(`the cost limit stops ${what}`, () => {
    const expression = compileExpression(source, new Map([['self', dyn]]))
    assert.ok(typeof expression !== 'string', String(expression))
    // Whether evaluation fails or completes does not matter, as long as it ends soon.
    const value = toCel(self)
    const ms = cpuMs(() => {
      try {
        withCostLimit(1_000_000, () => expression.run([value]))
      } catch (error) {
        assert.ok(error instanceof CelError, String(error))
      }
    })
    // 50 ms on an idle machine; without the cost limit, hours.
    assert.ok(ms < 2_000, `took ${ms} ms`)
  })
}

for (const [what, source] of [
  ['brackets', `${'('.repeat(10_000)}1${')'.repeat(10_000)}`],
  ['lists', `${'['.repeat(10_000)}${']'.repeat(10_000)}`],
  ['minus signs', `${'-'.repeat(40_000)}1`],
  ['members', `self${'.a'.repeat(20_000)}`],
  ['sums', `1${' + 1'.repeat(10_000)}`],
  ['conditions', `${'true ? 1 : '.repeat(4_000)}1`],
] as [string, string][]) {
  test(`deep nesting is reported as an error, without a stack overflow: ${what}`, () => {
    const expression = compileExpression(source, new Map([['self', dyn]]))
    assert.equal(typeof expression === 'string' ? expression.includes('recursion limit') : evaluate(source) !== undefined, true)
  })
}

test('long chains of && and || do not count as nesting', () => {
  assert.equal(evaluate(`true${' && true'.repeat(5_000)}`), true)
})

const piece = fc.constantFrom(
  ...'self,x,y,1,2u,1.5,"a",\'b\',b"c",true,null,[,],{,},(,),.,?,:,+,-,*,/,%,<,<=,==,!=,&&,||,!,in,has,all,exists,map,filter,size,matches,'
    .split(',')
    .concat([
      ',',
      'self.a',
      '[?',
      '.?',
      'optional.of',
      'self.map(x, x)',
      'type',
      'int',
      '"(a+)+"',
      'timestamp("2026-01-01T00:00:00Z")',
      'ip("::1")',
      '\\',
      '"',
    ]),
)

test('any text compiles or gives an error; evaluating it gives a value or a CelError', () => {
  const values = fc.jsonValue({ maxDepth: 2 })
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), values, (pieces, self) => {
      const expression = compileExpression(pieces.join(''), new Map([['self', dyn]]))
      if (typeof expression === 'string') return
      try {
        withCostLimit(100_000, () => expression.run([toCel(self)]))
      } catch (error) {
        assert.ok(error instanceof CelError, String(error))
      }
    }),
    { numRuns: Number(process.env.OARLOCK_TEST_RUNS ?? 3_000) },
  )
})

test('a well-typed expression does not fail with a type error', () => {
  const { number } = fc.letrec<{ number: string; truth: string }>(tie => ({
    number: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('1', 'self', '-7'),
      fc.tuple(tie('number'), fc.constantFrom('+', '-', '*'), tie('number')).map(parts => `(${parts.join(' ')})`),
      fc.tuple(tie('truth'), tie('number'), tie('number')).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      tie('number').map(a => `[${a}, 2].map(v, v + 1)[0]`),
    ),
    truth: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('true', 'false'),
      fc.tuple(tie('number'), fc.constantFrom('<', '>=', '==', '!='), tie('number')).map(parts => `(${parts.join(' ')})`),
      fc.tuple(tie('truth'), fc.constantFrom('&&', '||'), tie('truth')).map(parts => `(${parts.join(' ')})`),
      tie('number').map(a => `[1, 2, 3].exists(v, v == ${a})`),
    ),
  }))
  fc.assert(
    fc.property(number, fc.integer(), (source, self) => {
      const expression = compileExpression(source, new Map([['self', { kind: 'simple', name: 'int' } as CelType]]))
      assert.ok(typeof expression !== 'string', String(expression))
      assert.equal(expression.type, 'int')
      try {
        assert.equal(typeof expression.run([BigInt(self)]), 'bigint')
      } catch (error) {
        assert.match(String(error), /integer overflow/)
      }
    }),
  )
})
