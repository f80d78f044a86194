import { rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { exitCodes } from '../exit-codes.ts'
import { destroy } from './destroy.ts'

for (const [name, target, options] of [
  ['without a Stack, as with an unset variable', undefined, { namespace: 'prod' }],
  ['with an empty name of a Stack', '', { namespace: 'prod' }],
  ['without a Stack and a namespace', undefined, {}],
  ['with --all and without a namespace', undefined, { all: true }],
  ['with --all and an empty namespace', undefined, { all: true, namespace: '' }],
  ['with a Stack and --all', 'app', { all: true, namespace: 'prod' }],
] as const)
  test(`oarlock destroy ${name} destroys nothing, and names both forms`, () =>
    rejects(destroy(target, { ...options, yes: true, wait: true, timeout: '1m', kubeconfig: '/nonexistent' }), {
      exitCode: exitCodes.usage,
      hint: 'use "oarlock destroy STACK", or "oarlock destroy --all -n NAMESPACE"',
    }))
