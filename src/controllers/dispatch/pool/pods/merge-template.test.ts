import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { mergePodSpecs } from './merge-template.ts'

test('items of lists with a key are merged, other lists are replaced, as "kubectl patch" does', () => {
  const base = {
    automountServiceAccountToken: false,
    tolerations: [{ key: 'a' }],
    containers: [
      {
        name: 'worker',
        args: ['worker'],
        env: [{ name: 'A', value: '1' }],
        volumeMounts: [{ name: 'home', mountPath: '/home' }],
      },
    ],
    volumes: [{ name: 'home', emptyDir: {} }],
    imagePullSecrets: [{ name: 'one' }],
  }
  const template = {
    tolerations: [{ key: 'b' }],
    containers: [
      {
        name: 'worker',
        image: 'oarlock:1',
        args: ['worker', '--verbose'],
        env: [
          { name: 'A', value: '2' },
          { name: 'B', value: '3' },
        ],
        volumeMounts: [
          { name: 'cache', mountPath: '/home' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [{ name: 'cache', persistentVolumeClaim: { claimName: 'cache' } }],
    imagePullSecrets: [{ name: 'two' }],
  }
  deepEqual(mergePodSpecs(base, template), {
    automountServiceAccountToken: false,
    tolerations: [{ key: 'b' }],
    containers: [
      {
        name: 'worker',
        image: 'oarlock:1',
        args: ['worker', '--verbose'],
        env: [
          { name: 'A', value: '2' },
          { name: 'B', value: '3' },
        ],
        volumeMounts: [
          { name: 'cache', mountPath: '/home' },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      { name: 'cache', persistentVolumeClaim: { claimName: 'cache' } },
      { name: 'home', emptyDir: {} },
    ],
    imagePullSecrets: [{ name: 'two' }, { name: 'one' }],
  })
})

test('a template can delete what the base has, and an item without its key is rejected', () => {
  const base = { shareProcessNamespace: true, volumes: [{ name: 'tmp', emptyDir: {} }] }
  deepEqual(mergePodSpecs(base, { shareProcessNamespace: null, volumes: [{ name: 'tmp', $patch: 'delete' }] }), { volumes: [] })
  throws(() => mergePodSpecs(base, { containers: [{ image: 'oarlock:1' }] }), /does not contain declared merge key: name/)
})
