import assert from 'node:assert/strict'
import { test } from 'node:test'
import { satisfiesVersion } from './version-constraint.ts'

for (const [version, constraint, want] of [
  ['1.9.0', '1.9', true],
  ['1.9.1', '1.9', false],
  ['v1.9.0', '= 1.9.0', true],
  ['1.10.0', '>= 1.9', true],
  ['1.8.9', '>= 1.9', false],
  ['1.11.4', '>= 1.9, < 2', true],
  ['2.0.0', '>= 1.9, < 2', false],
  ['1.10.5', '!= 1.10.5', false],
  ['1.10.6', '> 1.10.5', true],
  ['1.10.5', '<= 1.10.5', true],
  ['1.10.0', '~> 1.9', true],
  ['2.0.0', '~> 1.9', false],
  ['1.9.7', '~> 1.9.2', true],
  ['1.10.0', '~> 1.9.2', false],
  ['1.9.1', '~> 1.9.2', false],
  ['1.11.0-beta1', '>= 1.11', true],
  ['unknown', '>= 0', false],
] as const) {
  test(`${version} ${want ? 'satisfies' : 'does not satisfy'} ${constraint}`, () =>
    assert.equal(satisfiesVersion(version, constraint), want))
}
