import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import { salvageTarget } from './salvage-target.ts'

const run = { metadata: { name: 'network-1', namespace: 'apps' }, spec: { stackRef: { name: 'network' }, epoch: 7 } } as Run
const options = { caCertificate: undefined, token: 'token', path: '/runs/1/terraform.tfstate' }
const want = { caCertificate: undefined, token: 'token', epoch: 7, path: '/runs/1/terraform.tfstate' }
const path = '/state/apps/network/run/network-1/state'

test('the supervisor saves the state at the server of the worker, over TLS or over its Unix socket', () => {
  deepEqual(salvageTarget(run, { ...options, storeUrl: 'https://127.0.0.1:7466/' }), { ...want, url: `https://127.0.0.1:7466${path}` })
  deepEqual(salvageTarget(run, { ...options, storeUrl: 'unix:///data/api.sock' }), {
    ...want,
    url: `http://localhost${path}`,
    socketPath: '/data/api.sock',
  })
})
