import { deepEqual, equal, notEqual, ok } from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { dependencyDigest } from './dependency-input.ts'
import { createStore, startRun } from './install.testing.ts'
import { machineInputs } from './machine-inputs.ts'
import { packageManagers } from './managers/index.ts'
import type { ManagerName } from './managers/package-manager.ts'
import { DependencyStore } from './store/dependency-store.ts'

const temporary = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
after(() => rmSync(temporary, { recursive: true }))
const programs = join(temporary, 'programs')
mkdirSync(programs)
for (const name of ['npm', 'node', 'python3', 'uv', 'go']) {
  writeFileSync(join(programs, name), `#!/bin/sh\necho "${name} 1.0 \${TOOL_VERSION:-default}"\n`)
  chmodSync(join(programs, name), 0o755)
}
const path = `${programs}:/usr/bin:/bin`
const store = new DependencyStore(createStore())

type Options = { credentialNames?: string[]; workerEnvNames?: string[]; manager?: ManagerName }

async function inputsOf(t: Parameters<typeof startRun>[0], env: Record<string, string>, { manager = 'npm', ...options }: Options = {}) {
  const { context } = await startRun(t, { level: 'Process', store: createStore(), files: {}, ...options })
  return await machineInputs(context, store, packageManagers[manager], { PATH: path, ...env })
}

for (const manager of ['npm', 'pip', 'uv', 'go'] as const) {
  test(`every variable that a Stack gives to an install by ${manager} is an input, with its value`, async t => {
    const digests = new Set([dependencyDigest(await inputsOf(t, {}, { manager }))])
    const variables = [
      ...['HTTPS_PROXY', 'NODE_EXTRA_CA_CERTS', 'BASH_ENV', 'GIT_CONFIG_GLOBAL', 'XDG_CONFIG_HOME', 'GOENV', 'REGION'],
      'LD_PRELOAD',
    ].flatMap(name => [{ [name]: '' }, { [name]: '/nowhere/a' }])
    variables.push({ PATH: `${path}:/nowhere` })
    for (const env of variables) digests.add(dependencyDigest(await inputsOf(t, env, { manager })))
    equal(digests.size, 1 + variables.length)
  })
}

test('of the environment of the worker, only variables that change an install are inputs', async t => {
  const env = { HTTPS_PROXY: 'http://proxy', npm_config_registry: 'http://registry', NPM_TOKEN: 'secret' }
  const inputs = await inputsOf(t, env, { credentialNames: ['NPM_TOKEN'], workerEnvNames: ['PATH', ...Object.keys(env)] })
  const found = inputs.filter(({ kind }) => kind === 'environment').map(({ name, value }) => `${name} ${value.split(':')[0]}`)
  deepEqual(found, ['npm_config_registry sha256', 'NPM_TOKEN set'])
})

test('a Secret of a Stack is an input with its value, as a hash that is slow to compute and the same on all machines', async t => {
  const read = async (value: string) => {
    const inputs = await inputsOf(t, { NPM_TOKEN: value }, { credentialNames: ['NPM_TOKEN'] })
    ok(!JSON.stringify(inputs).includes(value))
    return inputs.find(({ name }) => name === 'NPM_TOKEN')?.value
  }
  equal(await read('hunter2'), 'scrypt:c73988992241ae4fa86167aa20a22cc87d167bef92db271ea03e9e21e0af9dfc')
  notEqual(await read('hunter3'), await read('hunter2'))
})

test('a variable of a Stack that changes what a program prints does not change the version that other Stacks read', async t => {
  const versionOf = async (env: Record<string, string>) => (await inputsOf(t, env)).find(({ name }) => name === 'node')?.value
  equal(await versionOf({ TOOL_VERSION: 'other' }), 'node 1.0 other')
  equal(await versionOf({}), 'node 1.0 default')
  equal(await versionOf({ TOOL_VERSION: 'other' }), 'node 1.0 other')
})
