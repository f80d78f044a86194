import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { ownHost } from './own-host.ts'

const reachedBy = ownHost(['Oarlock.example.com', '10.0.0.7'])

for (const [header, expected] of [
  ['127.0.0.1:7467', 'loopback'],
  ['localhost', 'loopback'],
  ['[::1]:7467', 'loopback'],
  ['oarlock.example.com', 'tls'],
  ['OARLOCK.example.com:443', 'tls'],
  ['10.0.0.7:8443', 'tls'],
  ['evil.example', undefined],
  ['127.0.0.1.evil.example', undefined],
  ['oarlock.example.com.evil.example', undefined],
  ['evil.example#oarlock.example.com', undefined],
  ['10.0.0.8', undefined],
  ['', undefined],
  [undefined, undefined],
] as const)
  test(`Host ${header} is ${expected ?? 'rejected'}`, () => equal(reachedBy(header), expected))
