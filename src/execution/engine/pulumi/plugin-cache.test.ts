/** With PULUMI_BIN set, the real CLI downloads; otherwise a program with the same arguments, files and requests. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listContent } from '../../workspace/index.ts'
import type { EngineContext } from '../engine.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { linkPlugins } from './plugin-cache.ts'
import { PulumiCli } from './pulumi-cli.ts'
import type { RequiredPlugin } from './required-plugins.ts'

/** `pulumi plugin install resource NAME VERSION [--server URL]`, as far as the cache depends on it. */
const standIn = `#!/usr/bin/env node
const [,, plugin, install, kind, name, version] = process.argv
if (plugin === 'version') { console.log('v3.260.0'); process.exit() }
const at = process.argv.indexOf('--server')
const server = at > 0 ? process.argv[at + 1] : process.env.PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES.replace(/^[^=]*=/, '')
const architecture = process.arch === 'x64' ? 'amd64' : process.arch
const url = server + '/pulumi-resource-' + name + '-v' + version + '-linux-' + architecture + '.tar.gz'
const response = await fetch(url)
if (!response.ok) { console.error('error: ' + response.status + ' HTTP error fetching plugin from ' + url); process.exit(1) }
const { mkdirSync, writeFileSync } = await import('node:fs')
const { execFileSync } = await import('node:child_process')
const target = process.env.PULUMI_HOME + '/plugins/resource-' + name + '-v' + version
mkdirSync(target, { recursive: true })
execFileSync('tar', ['xzf', '-', '-C', target], { input: Buffer.from(await response.arrayBuffer()) })
writeFileSync(target + '.lock', '')
`

async function setUp(t: TestContext, env: Record<string, string> = {}) {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(base, { recursive: true }))
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const [, name, version] = /pulumi-resource-(\w+)-v([\d.]+)-/.exec(request.url ?? '') ?? []
    if (name === undefined || name === 'azuread') return void response.writeHead(404).end()
    const directory = mkdtempSync(join(base, 'plugin-'))
    writeFileSync(join(directory, `pulumi-resource-${name}`), `#!/bin/sh\necho ${name} ${version}\n`, { mode: 0o755 })
    response.end(execFileSync('tar', ['czf', '-', '-C', directory, '.']))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const program = join(base, 'pulumi.mjs')
  writeFileSync(program, standIn)
  chmodSync(program, 0o755)
  const workerEnv = {
    PATH: process.env.PATH,
    PULUMI_BIN: process.env.PULUMI_BIN ?? program,
    PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES: `^https://get.pulumi.com.*$=${url},^github://.*$=${url}`,
  }
  const PATH = `${join(base, 'bin')}:/usr/bin:/bin:${join(process.execPath, '..')}`
  const harness = await createEngineHarness(t, {}, { env: { PATH, ...env } })
  const cli = new PulumiCli(process.env.PULUMI_BIN ? workerEnv : { ...workerEnv, PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES: `x=${url}` })
  const link = async (context: EngineContext, ...required: RequiredPlugin[]) => {
    const home = join(context.scratch, 'pulumi-home')
    await linkPlugins(context, cli, { required, home })
    return home
  }
  return { base, url, requests, harness, link }
}

const random: RequiredPlugin = { name: 'random', version: '4.16.0', server: undefined }
const execute = (home: string, { name, version }: RequiredPlugin) =>
  execFileSync(join(home, 'plugins', `resource-${name}-v${version}`, `pulumi-resource-${name}`), { encoding: 'utf8' }).trim()

test('of 20 Runs that need a plugin concurrently, one downloads it, and all execute it', async t => {
  const { requests, harness, link } = await setUp(t)
  const contexts = await Promise.all(Array.from({ length: 20 }, () => harness.nextRun()))
  const homes = await Promise.all(contexts.map(context => link(context, random)))
  deepEqual(
    homes.map(home => execute(home, random)),
    homes.map(() => 'random 4.16.0'),
  )
  equal(requests.length, 1, requests.join())
  ok(
    harness.log.some(line => /^cached plugin random 4\.16\.0 for the Runs of its trust domain, in /.test(line)),
    harness.log.join('\n'),
  )
  const totals = contexts.map(({ providerUsage }) => providerUsage.total!)
  deepEqual(
    totals.map(({ cached, waited, downloaded }) => cached + waited + downloaded),
    totals.map(() => 1),
  )
  const [first, ...others] = totals.filter(({ downloaded }) => downloaded === 1)
  deepEqual(others, [])
  ok(first!.downloadedBytes > 10 && first!.downloadSeconds > 0 && first!.seconds >= first!.downloadSeconds, JSON.stringify(first))
  ok(
    totals.every(({ downloadSeconds }) => downloadSeconds === first!.downloadSeconds),
    JSON.stringify(totals),
  )
  ok(totals.some(({ waited }) => waited === 1))
  const later = await harness.nextRun()
  await link(later, random)
  const { seconds: _, ...total } = later.providerUsage.total!
  deepEqual(total, { cached: 1, waited: 0, downloaded: 0, downloadedBytes: 0, downloadSeconds: first!.downloadSeconds })
})

test('a plugin with a server of its own does not stand for the one of the default server', async t => {
  const { url, requests, harness, link } = await setUp(t)
  const other = { ...random, server: `${url}/other` }
  await link(await harness.nextRun(), other)
  await link(await harness.nextRun(), random)
  deepEqual(
    requests.map(path => path.startsWith('/other/')),
    [true, false],
  )
  equal((await listContent(join(harness.context.cacheDir, 'content'))).length, 2)
})

test('a plugin that is not there is left to the CLI of the Run, and after two failures immediately', async t => {
  const { requests, harness, link } = await setUp(t)
  const missing = { ...random, name: 'azuread' }
  for (let count = 0; count < 2; count++) await link(await harness.nextRun(), missing)
  match(harness.log.join('\n'), /plugin azuread 4\.16\.0 is not shared: .*404/)
  const before = requests.length
  ok(before > 0)
  await link(await harness.nextRun(), missing)
  equal(requests.length, before)
  equal(harness.context.providerUsage.total, undefined)
})

for (const [name, env] of [
  ['another source of plugins', { PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES: 'x=http://127.0.0.1:9' }],
  ['a proxy', { HTTPS_PROXY: 'http://127.0.0.1:9' }],
  ['a token', { GITHUB_TOKEN: 'secret' }],
] as const)
  test(`a Stack that sets ${name} gets plugins of its own`, async t => {
    const { requests, harness, link } = await setUp(t, env)
    await link(harness.context, random)
    deepEqual(requests, [])
  })

test('a plugin on the PATH is not downloaded: the CLI prefers it', async t => {
  const { base, requests, harness, link } = await setUp(t)
  mkdirSync(join(base, 'bin'))
  writeFileSync(join(base, 'bin', 'pulumi-resource-random'), '', { mode: 0o755 })
  await link(harness.context, random)
  deepEqual(requests, [])
})

test('a damaged plugin is downloaded again', async t => {
  const { requests, harness, link } = await setUp(t)
  await link(await harness.nextRun(), random)
  const [stored] = await listContent(join(harness.context.cacheDir, 'content'))
  const path = join(stored!.path, 'pulumi-resource-random')
  chmodSync(path, 0o755)
  writeFileSync(path, readFileSync(path, 'utf8').replace('echo', 'ECHO'))
  const home = await link(await harness.nextRun(), random)
  equal(execute(home, random), 'random 4.16.0')
  equal(requests.length, 2)
})
