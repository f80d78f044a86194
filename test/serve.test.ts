import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { configMapResource, createClient, secretResource } from '../src/kubernetes/client/index.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
const directories: string[] = []
after(() => directories.forEach(removeDirectory))

function directory(): string {
  const made = makeDataDir()
  directories.push(made)
  return made
}

function start(args: string[]): { child: ChildProcess; output(): string } {
  const { KUBECONFIG: _, OARLOCK_DATA: __, ...env } = process.env
  const child = spawn(process.execPath, [launcher, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...env, NO_COLOR: '1' } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream!.setEncoding('utf8').on('data', text => (output += text))
  return { child, output: () => output }
}

async function oarlock(...args: string[]): Promise<{ code: number | null; output: string }> {
  const { child, output } = start(args)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output: output() }
}

/** Starts `oarlock serve` and waits until it listens. */
async function serve(
  dataDir: string,
  ...flags: string[]
): Promise<{ child: ChildProcess; stop(): Promise<number | null>; output(): string }> {
  const { child, output } = start(['serve', '--data', dataDir, '--listen', '127.0.0.1:0', ...flags])
  for await (const line of createInterface({ input: child.stdout! })) if (/^ *data +/.test(line)) break
  equal(child.exitCode, null, output())
  const stop = async () => {
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    return code
  }
  return { child, stop, output }
}

const clientOf = (dataDir: string) => createClient({ kubeconfig: join(dataDir, 'kubeconfig') })

test('serve runs the API server with a kubeconfig; backup while it runs, SIGTERM, restore to another directory', async () => {
  const dataDir = directory()
  const server = await serve(dataDir)
  match(server.output(), new RegExp(`kubeconfig +${join(dataDir, 'kubeconfig')}`))
  equal(statSync(join(dataDir, 'kubeconfig')).mode & 0o777, 0o600)
  const client = await clientOf(dataDir)
  equal(await (await client.request({ method: 'GET', path: '/readyz' })).text(), 'ok')
  await client.resource(configMapResource).create({ metadata: { name: 'a', namespace: 'default' }, data: { a: 'b' } })

  const other = await oarlock('serve', '--data', dataDir, '--listen', '127.0.0.1:0')
  equal(other.code, 7, other.output)
  match(other.output, /is in use by another oarlock process/)

  const file = join(directory(), 'a.backup')
  const online = await oarlock('backup', '--data', dataDir, '--to', file)
  equal(online.code, 0, online.output)
  match(online.output, /a\.backup: \d+ objects up to resource version \d+, /)
  equal(statSync(file).mode & 0o777, 0o600)
  match((await oarlock('backup', '--data', dataDir, '--to', file)).output, /exists[\s\S]*--force/)
  equal((await oarlock('backup', '--kubeconfig', join(dataDir, 'kubeconfig'), '--to', file, '--force')).code, 0)
  const ontoServer = await oarlock('restore', file, '--data', dataDir, '--force')
  deepEqual([ontoServer.code, /is in use/.test(ontoServer.output)], [7, true], ontoServer.output)

  await client.close()
  equal(await server.stop(), 0)
  match(server.output(), /^stopped$/m)
  ok(!existsSync(join(dataDir, 'oarlock.db-wal')), 'the database was closed gracefully')
  const audited = readFileSync(join(dataDir, 'audit', 'audit.log'), 'utf8')
    .trim()
    .split('\n')
  ok(
    audited.some(line => /"verb":"create".*"objectRef":\{"resource":"configmaps","namespace":"default","name":"a"/.test(line)),
    audited.join('\n'),
  )

  const offline = await oarlock('backup', '--data', dataDir, '--to', `${file}2`, '-o', 'json')
  equal(offline.code, 0, offline.output)
  ok(JSON.parse(offline.output).objects.count > 5)
  const restored = join(directory(), 'data')
  const done = await oarlock('restore', file, '--data', restored)
  equal(done.code, 0, done.output)
  deepEqual(readdirSync(restored), ['oarlock.db'])
  ok(!existsSync(`${file}-wal`) && !existsSync(`${file}-shm`), 'the backup is unchanged')
  match((await oarlock('restore', file, '--data', restored)).output, /oarlock\.db exists: .*--force/)
  const again = await serve(restored, '--no-audit-log')
  const reader = await clientOf(restored)
  deepEqual((await reader.resource(configMapResource).get('a', { namespace: 'default' })).data, { a: 'b' })
  await reader.close()
  equal(await again.stop(), 0)
  ok(!existsSync(join(restored, 'audit')))
})

test('oarlock encryption rotate re-encrypts online and offline; a backup states which key it needs', async () => {
  const dataDir = join(directory(), 'data')
  const server = await serve(dataDir)
  const client = await clientOf(dataDir)
  const secrets = client.resource(secretResource)
  await secrets.create({ metadata: { name: 'a', namespace: 'default' }, stringData: { password: 'hunter2' } })
  const file = join(directory(), 'a.backup')
  const backup = await oarlock('backup', '--data', dataDir, '--to', file)
  const [, key] = /1 of them are encrypted with the key (key-\w+), which is not in the backup/.exec(backup.output) ?? []
  ok(key && !readFileSync(file, 'latin1').includes(Buffer.from('hunter2').toString('base64')), backup.output)

  const online = await oarlock('encryption', 'rotate', '--data', dataDir)
  equal(online.code, 0, online.output)
  match(online.output, new RegExp(`1 objects are encrypted with the new key key-\\w+\nkept for earlier backups: ${key}\n`))
  equal((await secrets.get('a', { namespace: 'default' })).data?.password, Buffer.from('hunter2').toString('base64'))
  const remote = await oarlock('encryption', 'rotate', '--kubeconfig', join(dataDir, 'kubeconfig'), '--remove-old-keys')
  deepEqual([remote.code, remote.output.includes(`, ${key}? `)], [2, true], remote.output)
  await client.close()
  equal(await server.stop(), 0)

  const restored = join(directory(), 'data')
  const without = await oarlock('restore', file, '--data', restored)
  deepEqual([without.code, without.output.includes(`1 with the key ${key}`)], [7, true], without.output)
  const keys = join(directory(), 'keys.json')
  copyFileSync(join(dataDir, 'keys', 'encryption-config.json'), keys)
  const done = await oarlock('restore', file, '--data', restored, '--encryption-provider-config', keys)
  equal(done.code, 0, done.output)

  const unconfirmed = await oarlock('encryption', 'rotate', '--data', dataDir, '--remove-old-keys')
  equal(unconfirmed.code, 2, unconfirmed.output)
  match(unconfirmed.output, new RegExp(`re-encrypt all Secrets, then remove key-\\w+, ${key}\\? .*stdin is not a terminal\n.*--yes`))
  const offline = await oarlock('encryption', 'rotate', '--data', dataDir, '--remove-old-keys', '--yes', '-o', 'json')
  equal(offline.code, 0, offline.output)
  deepEqual({ ...JSON.parse(offline.output), key: '' }, { key: '', olderKeys: [], objects: 1 })
  const missing = await oarlock('encryption', 'rotate', '--data', join(directory(), 'nothing'))
  deepEqual([missing.code, /does not exist/.test(missing.output)], [7, true], missing.output)
})

for (const { name, args, code, expected } of [
  {
    name: 'an invalid address',
    args: (dir: string) => ['serve', '--data', dir, '--listen', 'nowhere'],
    code: 2,
    expected: /must be HOST:PORT/,
  },
  {
    name: 'a data directory that is a file',
    args: (dir: string) => {
      writeFileSync(join(dir, 'file'), '')
      return ['serve', '--data', join(dir, 'file'), '--listen', '127.0.0.1:0']
    },
    code: 7,
    expected: /file/,
  },
  {
    name: 'a file that is not a database',
    args: (dir: string) => {
      writeFileSync(join(dir, 'oarlock.db'), 'not a database '.repeat(1_000))
      return ['serve', '--data', dir, '--listen', '127.0.0.1:0']
    },
    code: 7,
    expected: /is corrupt .*oarlock restore/,
  },
  {
    name: 'a backup without a database',
    args: (dir: string) => ['backup', '--data', dir, '--to', join(dir, 'b')],
    code: 7,
    expected: /\S+oarlock\.db does not exist: pass the data directory/,
  },
  { name: 'a backup without a destination', args: () => ['backup'], code: 2, expected: /--to <file>/ },
  {
    name: 'a restore of a missing file',
    args: (dir: string) => ['restore', join(dir, 'none'), '--data', dir],
    code: 7,
    expected: /\S+none does not exist: pass a file/,
  },
]) {
  test(`${name} exits with ${code}`, async () => {
    const result = await oarlock(...args(directory()))
    match(result.output, expected)
    equal(result.code, code, result.output)
  })
}
