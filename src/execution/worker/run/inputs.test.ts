import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, StackSpec } from '../../../api/index.ts'
import type { RunInputObjects } from '../../../stores/state/index.ts'
import { dataVariables, resolveInputs } from './inputs.ts'

const found = {
  kind: 'Secret',
  name: 'shop/credentials',
  texts: { 'aws-key': 'k', limits: '{"cpu":[1,2]}', broken: '{"password": hunter2' },
  keys: ['aws-key', 'broken', 'limits'],
}
const variables = (reference: { keys?: Record<string, string>; format?: 'Text' | 'JSON' }) =>
  dataVariables({ name: 'credentials', ...reference }, 'spec.variablesFrom[0].secretRef', found)

test('every key is a variable with its text', () => deepEqual(Object.fromEntries(variables({})), found.texts))

test('keys are renamed, and others are left out', () =>
  deepEqual(variables({ keys: { 'aws-key': 'aws:secretKey' } }), [['aws:secretKey', 'k']]))

test('JSON values are parsed', () =>
  deepEqual(variables({ keys: { limits: 'shop:limits' }, format: 'JSON' }), [['shop:limits', { cpu: [1, 2] }]]))

test('a missing key is an error that lists the keys', () =>
  throws(() => variables({ keys: { region: 'aws:region' } }), {
    reason: 'KeyNotFound',
    message: 'spec.variablesFrom[0].secretRef.keys[region]: Secret shop/credentials has no key "region"; it has: aws-key, broken, limits',
  }))

test('a value that is not JSON is an error without the value', () =>
  throws(() => variables({ keys: { broken: 'x' }, format: 'JSON' }), {
    ...{ reason: 'InvalidConfiguration', retryable: false },
    message:
      'spec.variablesFrom[0].secretRef.format: key "broken" of Secret shop/credentials is not JSON; correct it (a JSON string has double quotes), or set format: Text',
  }))

const base64 = (text: string) => Buffer.from(text).toString('base64')
const runWith = (stack: Partial<StackSpec>) =>
  ({ metadata: { name: 'web-1', namespace: 'shop' }, spec: { stack: { source: {}, ...stack } } }) as Run
const none: RunInputObjects = { secrets: [], configMaps: [], outputs: [] }

test('values of Secrets and sensitive outputs are secret, those of ConfigMaps and other outputs are not', () => {
  const run = runWith({
    source: { git: { url: 'https://git/x', secretRef: { name: 'git' } } },
    variablesFrom: [{ configMapRef: { name: 'region' } }, { stackRef: { name: 'net' } }, { secretRef: { name: 'db' } }],
    env: [{ name: 'TOKEN', secretKeyRef: { name: 'api', key: 'token' } }],
    manifests: { kubeconfigSecretRef: { name: 'cluster' } },
  } as Partial<StackSpec>)
  const inputs = resolveInputs(run, {
    secrets: [
      { name: 'git', keys: ['password'], data: { password: base64('git-pw') } },
      { name: 'db', keys: ['dsn'], data: { dsn: base64('db://x') } },
      { name: 'api', keys: ['other', 'token'], data: { token: base64('t0ken') } },
      { name: 'cluster', keys: ['kubeconfig'], data: { kubeconfig: base64('users:\n- user:\n    token: kube-t') } },
    ],
    configMaps: [{ name: 'region', keys: ['region'], data: { region: 'eu' } }],
    outputs: [{ stack: 'net', keys: ['key', 'url'], data: { key: base64('"k3y"'), url: base64('"http://n"') }, sensitive: ['key'] }],
  })
  deepEqual(inputs.variables, { region: 'eu', key: 'k3y', url: 'http://n', dsn: 'db://x' })
  deepEqual(inputs.sensitiveNames.sort(), ['dsn', 'key'])
  deepEqual([inputs.env, inputs.secretEnvNames], [{ TOKEN: 't0ken' }, ['TOKEN']])
  deepEqual(inputs.secrets.sort(), ['db://x', 'git-pw', 'k3y', 'kube-t', 't0ken'])
})

test('keys of Secrets that engine ansible names are secret, by their field', () => {
  const run = runWith({ ansible: { playbooks: ['site.yml'], vaultPasswords: [{ id: 'prod', secretKeyRef: { name: 'v', key: 'p' } }] } })
  const secrets = [{ name: 'v', keys: ['p'], data: { p: base64('vault-pw') } }]
  const inputs = resolveInputs(run, { ...none, secrets })
  deepEqual(inputs.engineSecrets, { 'spec.ansible.vaultPasswords[prod].secretKeyRef': 'vault-pw' })
  deepEqual(inputs.secrets, ['vault-pw'])
  throws(() => resolveInputs(run, none), /^InputError: spec\.ansible\.vaultPasswords\[prod\]\.secretKeyRef: Secret shop\/v does not exist/)
})

for (const [name, stack, objects, message] of [
  [
    'a missing Secret',
    { variablesFrom: [{ secretRef: { name: 'db' } }] },
    none,
    /^spec\.variablesFrom\[0\]\.secretRef: Secret shop\/db does not exist; create it \(kubectl create secret generic db -n shop …\), or correct the name$/,
  ],
  [
    'a missing ConfigMap',
    { variablesFrom: [{ configMapRef: { name: 'region' } }] },
    none,
    /^spec\.variablesFrom\[0\]\.configMapRef: ConfigMap shop\/region does not exist; create it \(kubectl create configmap region -n shop …\)/,
  ],
  [
    'outputs that do not exist yet',
    { variablesFrom: [{ stackRef: { name: 'net' } }] },
    none,
    /^spec\.variablesFrom\[0\]\.stackRef: Stack shop\/net has no outputs yet; wait until it is Ready, .*: oarlock describe stack net -n shop$/,
  ],
  [
    'an output that the Stack does not have',
    { variablesFrom: [{ stackRef: { name: 'net', outputs: { vpc: 'vpc' } } }] },
    { ...none, outputs: [{ stack: 'net', keys: ['key', 'url'], data: {}, sensitive: [] }] },
    /^spec\.variablesFrom\[0\]\.stackRef\.outputs\[vpc\]: Stack shop\/net has no output "vpc"; it has: key, url$/,
  ],
  [
    'a key that the Secret does not have, of which the Run got no value',
    { env: [{ name: 'TOKEN', secretKeyRef: { name: 'api', key: 'token' } }] },
    { ...none, secrets: [{ name: 'api', keys: ['user'], data: {} }] },
    /^spec\.env\[0\]\.secretKeyRef\.key: Secret shop\/api has no key "token"; it has: user$/,
  ],
] as [string, Partial<StackSpec>, RunInputObjects, RegExp][]) {
  test(`reports ${name}`, () => {
    throws(() => resolveInputs(runWith(stack), objects), { message })
    const missing: string[] = []
    resolveInputs(runWith(stack), objects, error => missing.push(error.message))
    equal(missing.length, 1)
  })
}
