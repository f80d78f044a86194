import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { createEngineContext, type EngineContextOptions } from './engine-context.ts'

test('a variable that the Stack sets too is the one of the Stack, not of the worker', () => {
  const options = {
    run: { metadata: { name: 'run' }, spec: { stack: {}, stackRef: { name: 'app', uid: 'uid' }, epoch: 1, type: 'Apply' } },
    ...{ directory: {}, state: {}, stateFile: {}, programs: {}, stopper: {}, log: {}, reporter: {} },
    environment: {
      env: { HTTPS_PROXY: 'worker', AWS_REGION: 'worker', AWS_KEY: 'worker' },
      selected: ['AWS_REGION', 'AWS_KEY'],
      secrets: [],
    },
    inputs: { env: { AWS_REGION: 'stack', TOKEN: 'stack' }, secretEnvNames: ['TOKEN'], variables: {}, sensitiveNames: [] },
  }
  const { env, credentialNames, workerEnvNames } = createEngineContext(options as unknown as EngineContextOptions)
  deepEqual(env, { HTTPS_PROXY: 'worker', AWS_REGION: 'stack', AWS_KEY: 'worker', TOKEN: 'stack' })
  deepEqual(credentialNames, ['AWS_KEY', 'TOKEN'])
  deepEqual(workerEnvNames, ['HTTPS_PROXY', 'AWS_KEY'])
})
