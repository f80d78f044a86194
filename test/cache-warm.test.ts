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
