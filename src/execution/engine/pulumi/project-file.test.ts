import { deepEqual, equal, rejects } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { dependencyOptions, pythonPackages } from './install-packages.ts'
import { parseProject } from './project-file.ts'

describe('a project file', () => {
  test('has a name, a runtime with options and a backend', async () => {
    const text =
      'name: shop\nruntime:\n  name: nodejs\n  options: { packagemanager: pnpm }\nbackend: { url: "s3://b" }\nstackConfigDir: config\n' +
      'config:\n  size: integer\n  list: { type: array }\n  "aws:tags": { type: object }\n'
    const { document, ...project } = await parseProject('Pulumi.yaml', text)
    equal((document as { name: string }).name, 'shop')
    deepEqual(project, {
      ...{ fileName: 'Pulumi.yaml', name: 'shop', runtime: 'nodejs', runtimeOptions: { packagemanager: 'pnpm' } },
      ...{ backendUrl: 's3://b', stackConfigDirectory: 'config', structuredConfig: new Set(['shop:list', 'aws:tags']) },
    })
    deepEqual(await parseProject('Pulumi.json', '{"name":"shop","runtime":"yaml"}'), {
      ...{ fileName: 'Pulumi.json', name: 'shop', runtime: 'yaml', runtimeOptions: {}, backendUrl: undefined, stackConfigDirectory: '.' },
      structuredConfig: new Set(),
      document: { name: 'shop', runtime: 'yaml' },
    })
  })
  for (const [text, message] of [
    ['a: [', /^Pulumi.yaml cannot be parsed: /],
    ['- a', /must be an object/],
    ['runtime: yaml', /name must have 1 to 100 letters/],
    ['name: a/b\nruntime: yaml', /name must have 1 to 100 letters.*got "a\/b"/],
    ['name: a', /runtime must name a language/],
    ['name: a\nruntime: {}', /runtime must name a language/],
  ] as const) {
    test(`is rejected: ${JSON.stringify(text)}`, () =>
      rejects(parseProject('Pulumi.yaml', text), { name: 'EngineError', retryable: false, message }))
  }
})

describe('packages of a program', () => {
  for (const [runtime, runtimeOptions, want] of [
    ['nodejs', {}, { runtime: 'node' }],
    ['nodejs', { packagemanager: 'pnpm' }, { runtime: 'node', manager: 'pnpm' }],
    ['nodejs', { packagemanager: 'yarn' }, { runtime: 'node' }],
    ['bun', {}, { runtime: 'node', manager: 'bun' }],
    ['python', { toolchain: 'uv' }, { runtime: 'python', manager: 'uv' }],
    ['python', { toolchain: 'pip', virtualenv: 'venv' }, { runtime: 'python', virtualEnvironment: 'venv' }],
    ['go', {}, { runtime: 'go' }],
    ['yaml', {}, undefined],
    ['dotnet', {}, undefined],
  ] as const) {
    test(`of ${runtime} with ${JSON.stringify(runtimeOptions)}`, () => deepEqual(dependencyOptions({ runtime, runtimeOptions }), want))
  }
})

describe('packages of a Python program are found', () => {
  for (const [name, options, want] of [
    ['on PATH, also those of the root of a workspace', {}, { paths: ['/work/root/.venv/bin'], env: {} }],
    ['by uv, which looks next to uv.lock', { manager: 'uv' }, { paths: [], env: { UV_PROJECT_ENVIRONMENT: '/work/root/.venv' } }],
    ['by poetry', { manager: 'poetry' }, { paths: [], env: {} }],
    ['where the project says', { virtualEnvironment: 'venv' }, { paths: [], env: {} }],
  ] as const) {
    const trees = [{ place: { base: 'source', path: 'root/.venv' }, path: '/store/1' }] as const
    test(name, () => deepEqual(pythonPackages('/work', { runtime: 'python', ...options }, { trees }), want))
  }
})
