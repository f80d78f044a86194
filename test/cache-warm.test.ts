/** `oarlock cache warm`, and a Run that finds what it has fetched. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { isReady, StackFixture } from './support/stacks.ts'

const npm = ['/usr/bin', dirname(process.execPath)].map(directory => join(directory, 'npm')).find(path => existsSync(path))
const skip = npm === undefined ? 'needs npm in /usr/bin' : false

/** It needs no network. */
const files = {
  'package.json': '{"name":"p","version":"1.0.0","dependencies":{"shared":"file:shared"}}',
  'package-lock.json': JSON.stringify({
    ...{ name: 'p', version: '1.0.0', lockfileVersion: 3, requires: true },
    packages: {
      '': { name: 'p', version: '1.0.0', dependencies: { shared: 'file:shared' } },
      'node_modules/shared': { resolved: 'shared', link: true },
      shared: { version: '1.0.0' },
    },
  }),
  'shared/package.json': '{"name":"shared","version":"1.0.0"}',
  'shared/index.js': 'module.exports = "from shared"',
}

describe('oarlock cache warm', { skip }, () => {
  const dataDir = makeDataDir()
  const source = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  let up: OarlockProcess
  before(async () => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(source, path)), { recursive: true })
      writeFileSync(join(source, path), text)
    }
    up = await startOarlock(dataDir)
  })
  after(async () => {
    equal(await up.stop(), 0)
    removeDirectory(dataDir)
    rmSync(source, { recursive: true })
  })

  const warm = (...args: string[]) => runOarlock(['cache', 'warm', source, '--data', dataDir, ...args])

  test('fetches the packages of a source, and the first Run of a Stack has them', async () => {
    const first = await warm('--domain', 'process-namespace-default', '-o', 'json')
    equal(first.code, 0, first.text)
    const { engine, items } = JSON.parse(first.stdout)
    deepEqual(
      [engine, items.map(({ kind, name, domain }: Record<string, string>) => [kind, name, domain])],
      [null, [['Dependencies', 'npm', 'process-namespace-default']]],
    )
    const again = await warm('--domain', 'process-namespace-default')
    match(again.text, /dependencies of npm \(.*\) that Run cache-warm-.* has installed/)
    match(again.text, /1 item, .* for Runs of process-namespace-default/)
    deepEqual(readdirSync(join(dataDir, 'cache/warm')), [])

    const stacks = new StackFixture(up.client)
    const apply = ['node', '-e', 'console.log(require("shared"))']
    await stacks.create('app', { engine: 'command', source: { inline: { files } }, command: { apply, installDependencies: true } })
    await stacks.until('app', 'Ready', isReady, 120_000)
    const [run] = await stacks.runsOf('app')
    deepEqual([run?.status?.dependencies?.source, run?.status?.dependencies?.digest], ['Cached', items[0].digest])
  })

  test('fetches the packages of a Stack with its variables, and its next Run has them', async () => {
    const stacks = new StackFixture(up.client)
    const apply = ['node', '-e', 'console.log(require("shared"))']
    await stacks.create('own', {
      ...{ engine: 'command', source: { inline: { files } }, command: { apply, installDependencies: true } },
      // A setting of npm is part of the digest.
      env: [{ name: 'npm_config_install_strategy', value: 'nested' }],
    })
    await stacks.until('own', 'Ready', isReady, 120_000)
    const [first] = await stacks.runsOf('own')
    equal((await runOarlock(['cache', 'prune', '--data', dataDir, '--max-size', '0'])).code, 0)

    const env = { KUBECONFIG: up.kubeconfig }
    const warmed = await runOarlock(['cache', 'warm', 'stack/own', '-n', 'default', '--data', dataDir, '-o', 'json'], { env })
    equal(warmed.code, 0, warmed.text)
    const { engine, domain, items } = JSON.parse(warmed.stdout)
    deepEqual([engine, domain, items.map(({ kind }: { kind: string }) => kind)], ['command', 'process-namespace-default', ['Dependencies']])
    await stacks.patch('own', { spec: { variables: { changed: 'true' } } })
    await stacks.until(
      'own',
      'applied again',
      each => isReady(each) && each.status?.observedGeneration === each.metadata.generation,
      120_000,
    )
    const second = (await stacks.runsOf('own')).at(-1)
    deepEqual([second?.status?.dependencies?.source, second?.status?.dependencies?.digest], ['Cached', first?.status?.dependencies?.digest])
  })

  test('rejects a Stack that has had no Run, and options that a Stack has itself', async () => {
    const env = { KUBECONFIG: up.kubeconfig }
    await new StackFixture(up.client).create('idle', {
      engine: 'command',
      source: { inline: { files } },
      command: { apply: ['true'] },
      suspend: true,
    })
    const idle = await runOarlock(['cache', 'warm', 'stack/idle', '-n', 'default', '--data', dataDir], { env })
    equal(idle.code, 1, idle.text)
    match(idle.text, /Stack default\/idle has had no Run yet.*oarlock plan idle -n default/s)
    const named = await runOarlock(['cache', 'warm', 'stack/idle', '--domain', 'namespace-a', '--data', dataDir], { env })
    equal(named.code, 2, named.text)
    match(named.text, /--domain is for a directory/)
  })

  test('evicts down to the size that the environment names, as workers with it do', async () => {
    const list = async (): Promise<{ domain: string; bytes: number }[]> =>
      JSON.parse((await runOarlock(['cache', 'list', '--data', dataDir, '-o', 'json'])).stdout).items
    const add = (domain: string, size: string) =>
      runOarlock(['cache', 'warm', source, '--data', dataDir, '--domain', domain], { env: { OARLOCK_DEPENDENCY_CACHE_SIZE: size } })
    equal((await add('process-namespace-a', '1Gi')).code, 0)
    const { bytes = 0 } = (await list()).find(({ domain }) => domain === 'process-namespace-a') ?? {}
    const second = await add('process-namespace-b', String(Math.ceil(bytes * 1.5)))
    equal(second.code, 0, second.text)
    deepEqual(
      (await list()).map(({ domain }) => domain),
      ['process-namespace-b'],
    )
    match((await add('process-namespace-c', 'small')).text, /OARLOCK_DEPENDENCY_CACHE_SIZE: /)
  })

  for (const [name, args, code, message] of [
    ['a domain of another form', ['--domain', 'team'], 1, /--domain must be namespace-NAME or tenant-UID.*, got "team"/],
    ['a directory outside of the source', ['--domain', 'process-namespace-a', '--directory', '../x'], 1, /is outside of the source/],
    ['a directory that does not exist', ['--domain', 'process-namespace-a', '--directory', 'x'], 1, /the source has no directory x/],
    ['no domain', [], 2, /--domain/],
  ] as const)
    test(`rejects ${name}`, async () => {
      const result = await warm(...args)
      equal(result.code, code, result.text)
      match(result.text, message)
    })
})
