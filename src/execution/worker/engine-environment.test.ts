import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEngineEnvironment, selectEngineEnvironment } from './engine-environment.ts'

const workerEnv = {
  PATH: '/bin',
  HOME: '/root',
  TMPDIR: '/tmp',
  HTTPS_PROXY: 'http://proxy:3128',
  OARLOCK_TOKEN: 'worker-token',
  AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE',
  AWS_REGION: 'eu-central-1',
  AWS_SDK_LOAD_CONFIG: '1',
  AWSX: 'other-value',
  KUBECONFIG: '/etc/kube/config',
  ARM_CLIENT_SECRET: 'arm-secret',
  UNSET: undefined,
}

test('engines always get where the certificates of a private CA are', () => {
  const files = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'PIP_CERT']
  const { env, selected } = selectEngineEnvironment(Object.fromEntries(files.map(name => [name, '/etc/ssl/ca.pem'])), [])
  assert.deepEqual(Object.keys(env), files)
  assert.deepEqual(selected, [])
})

for (const { name, patterns, want } of [
  { name: 'without patterns, engines get the proxy settings only', patterns: [], want: ['HTTPS_PROXY'] },
  {
    name: 'a trailing * selects by prefix',
    patterns: ['AWS_*'],
    want: ['AWS_ACCESS_KEY_ID', 'AWS_REGION', 'AWS_SDK_LOAD_CONFIG', 'HTTPS_PROXY'],
  },
  { name: 'a name selects exactly that variable', patterns: ['KUBECONFIG', 'AWS'], want: ['HTTPS_PROXY', 'KUBECONFIG'] },
  { name: 'HOME, TMPDIR and OARLOCK_* are never passed', patterns: ['O*', 'H*', 'T*', 'OARLOCK_TOKEN', 'HOME'], want: ['HTTPS_PROXY'] },
  { name: 'an unset variable is not passed', patterns: ['UNSET'], want: ['HTTPS_PROXY'] },
]) {
  test(name, () => assert.deepEqual(Object.keys(selectEngineEnvironment(workerEnv, patterns).env).sort(), want))
}

test('invariant 9: values are masked unless they are short or have a public name', () => {
  const { secrets } = selectEngineEnvironment(workerEnv, ['AWS_*', 'ARM_*', 'KUBECONFIG'])
  assert.deepEqual(secrets.sort(), ['AKIAEXAMPLE', 'arm-secret'])
})

test('OARLOCK_ENGINE_ENVIRONMENT holds patterns separated by commas', () => {
  assert.deepEqual(parseEngineEnvironment('AWS_*, KUBECONFIG,'), ['AWS_*', 'KUBECONFIG'])
  assert.deepEqual(parseEngineEnvironment(''), [])
})

for (const [text, message] of [
  ['AWS-*', /^OARLOCK_ENGINE_ENVIRONMENT "AWS-\*" must be the name of an environment variable, or a prefix followed by "\*"/],
  ['*', /"\*" must be the name of an environment variable/],
  ['A*B', /"A\*B" must be/],
  ['AWS_*,OARLOCK_*', /"OARLOCK_\*" must not select HOME, TMPDIR or OARLOCK_\*/],
  ['HOME', /"HOME" must not select HOME/],
] as const) {
  test(`rejects OARLOCK_ENGINE_ENVIRONMENT ${text}`, () =>
    assert.throws(() => parseEngineEnvironment(text), { name: 'WorkerOptionError', message }))
}
