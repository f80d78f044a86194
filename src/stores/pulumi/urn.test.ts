import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { formatUrn, nameOf, parseUrn, typeOf } from './urn.ts'

for (const { urn, want, type } of [
  { urn: 'urn:pulumi:dev::shop::a:b:C::x', want: { stack: 'dev', project: 'shop', qualifiedType: 'a:b:C', name: 'x' }, type: 'a:b:C' },
  {
    urn: 'urn:pulumi:dev::shop::p:q:R$a:b:C::x',
    want: { stack: 'dev', project: 'shop', qualifiedType: 'p:q:R$a:b:C', name: 'x' },
    type: 'a:b:C',
  },
  {
    urn: 'urn:pulumi:dev::shop::a:b:C::x::y',
    want: { stack: 'dev', project: 'shop', qualifiedType: 'a:b:C', name: 'x::y' },
    type: 'a:b:C',
  },
])
  test(`the parts of ${urn}`, () => {
    deepEqual(parseUrn(urn), want)
    deepEqual([typeOf(urn), nameOf(urn), formatUrn(parseUrn(urn))], [type, want.name, urn])
  })

test('what is no URN has no parts', () => {
  deepEqual(parseUrn('x::y'), { stack: '', project: '', qualifiedType: '', name: '' })
  equal(typeOf(''), '')
})
