/** Starts of `oarlock up` that fail. Each reports the reason and the remedy, exits as documented, and corrupts nothing. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { crdRevision, crdRevisionAnnotation } from '../src/app/controllers/install.ts'
import { exitCodes } from '../src/cli/exit-codes.ts'
import { crdResource, createClient } from '../src/kubernetes/client/index.ts'
import { startServer } from '../src/kubernetes/server/index.ts'
import { checkMarker, storeMarker, up, validSpec } from './support/data-directory.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

describe('oarlock up fails to start', { concurrency: 3 }, () => {
  for (const [what, file] of [
    ['the objects', 'oarlock.db'],
    ['the states', join('state', 'state.db')],
  ] as const) {
    test(`does not change a data directory of a newer version (${what})`, async () => {
      const dataDir = makeDataDir()
      const first = await startOarlock(dataDir)
      await storeMarker(first)
      equal(await first.stop(), 0)
      const path = join(dataDir, file)
      const version = setVersion(path, 99)
      const before = readFileSync(path)

      const { code, stderr } = await up(dataDir)
      equal(code, exitCodes.dataDirectory, stderr)
      match(stderr, /newer/)
      match(stderr, /99/)
      match(stderr, new RegExp(`\\b${version}\\b`), 'the supported version')
      match(stderr, /(run the|use the) newer version/)
      ok(before.equals(readFileSync(path)), 'the file was written to')

      setVersion(path, version)
      await checkMarker(dataDir)
      removeDirectory(dataDir)
    })
  }

  test('does not replace the CRDs of a newer version, which would drop fields that this version does not know', async () => {
    const dataDir = makeDataDir()
    const first = await startOarlock(dataDir)
    const newer = { metadata: { annotations: { [crdRevisionAnnotation]: String(crdRevision + 1) } } }
    const { metadata } = await first.client.resource(crdResource).patch('stacks.oarlock.dev', newer as object, { type: 'merge' })
    equal(await first.stop(), 0)

    const { code, stderr } = await up(dataDir)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, new RegExp(`CRDs have revision ${crdRevision + 1}, this version supports up to ${crdRevision}$`, 'm'))
    match(stderr, /hint: run the newer version again, or restore a backup that was made before the upgrade/)

    const server = await startServer({ dataDir, listen: { port: 0 } })
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    equal((await client.resource(crdResource).get('stacks.oarlock.dev')).metadata.resourceVersion, metadata.resourceVersion)
    await client.close()
    await server.close()
    removeDirectory(dataDir)
  })

  for (const { what, file, corrupt, want } of [
    {
      what: 'a corrupt database of objects',
      file: 'oarlock.db',
      corrupt: (bytes: Buffer) => Buffer.concat([Buffer.from('this is not a database'), bytes.subarray(22)]),
      want: /oarlock.db is corrupt .* Restore a backup \(oarlock restore BACKUP --data .* --force\)/s,
    },
    {
      what: 'a corrupt database of states',
      file: join('state', 'state.db'),
      corrupt: (bytes: Buffer) => Buffer.concat([Buffer.from('this is not a database'), bytes.subarray(22)]),
      want: /state.*restore the directory from a backup, or choose another directory with --data/s,
    },
    {
      what: 'the key of another data directory',
      file: join('keys', 'state.key'),
      corrupt: () => Buffer.from(`${'ab'.repeat(32)}\n`),
      want: /key.*restore the file keys\/state\.key of this data directory/s,
    },
  ]) {
    test(`exits with 7 for ${what}, and loses nothing`, async () => {
      const dataDir = makeDataDir()
      const first = await startOarlock(dataDir)
      await storeMarker(first)
      equal(await first.stop(), 0)
      const path = join(dataDir, file)
      const original = readFileSync(path)
      writeFileSync(path, corrupt(original))
      const { code, stderr } = await up(dataDir)
      equal(code, exitCodes.dataDirectory, stderr)
      match(stderr, want)
      writeFileSync(path, original)
      await checkMarker(dataDir)
      removeDirectory(dataDir)
    })
  }

  test('rejects a second process on the same data directory, which does not affect the first one', async () => {
    const dataDir = makeDataDir()
    const first = await startOarlock(dataDir)
    await storeMarker(first)
    const before = filesOf(dataDir)
    for (const args of [[], ['--sample']]) {
      const { code, stderr } = await up(dataDir, ...args)
      equal(code, exitCodes.dataDirectory, stderr)
      match(stderr, new RegExp(`${dataDir}.* in use`))
      match(stderr, /stop it first, or choose another data directory/)
    }
    deepEqual(filesOf(dataDir), before)
    ok(!/"level":50|storage/.test(readFileSync(join(dataDir, 'oarlock.log'), 'utf8')), 'the log of the first')
    const stacks = new StackFixture(first.client)
    await stacks.create('after', validSpec)
    await stacks.untilReady('after')
    equal(await first.stop(), 0)
    await checkMarker(dataDir)
    removeDirectory(dataDir)
  })

  test('a copy of a data directory is refused while the original is in use, and reported afterwards', async () => {
    const [original, copy] = [makeDataDir(), join(makeDataDir(), 'copy')]
    const first = await startOarlock(original)
    await storeMarker(first)
    cpSync(original, copy, { recursive: true, filter: path => !path.endsWith('.sock') })
    const { code, stderr } = await up(copy)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, new RegExp(`${copy} is a copy of ${original}, which a running "oarlock up" uses: both would apply the same Stacks`))
    equal(await first.stop(), 0)

    const reported = await startOarlock(copy)
    match(
      reported.output(),
      new RegExp(`warning: this data directory was copied from ${original} on \\S+: do not start "oarlock up" there`),
    )
    equal(await reported.stop(), 0)
    // From its second start on it is the original, also where it is moved to.
    const moved = `${copy}-moved`
    renameSync(copy, moved)
    const last = await startOarlock(moved)
    ok(!last.output().includes('copied'), last.output())
    equal(await last.stop(), 0)
    for (const directory of [original, dirname(copy)]) removeDirectory(directory)
  })

  test('names the flag of a port in use, and starts on another port', async () => {
    const dataDir = makeDataDir()
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as { port: number }
    await Promise.all(
      ['--listen', '--health-address'].map(async flag => {
        const own = join(dataDir, flag)
        const { code, stderr } = await up(own, flag, `127.0.0.1:${port}`)
        equal(code, exitCodes.listen, stderr)
        match(stderr, new RegExp(`127.0.0.1:${port}.* is in use by another process`))
        match(stderr, new RegExp(`${flag} HOST:PORT`))
      }),
    )
    holder.close()
    const next = await startOarlock(join(dataDir, '--health-address'))
    equal(await next.stop(), 0)
    removeDirectory(dataDir)
  })

  for (const [value, want] of [
    ['', /address "" must be HOST:PORT/],
    ['nowhere', /address "nowhere" must be HOST:PORT with a port from 0 to 65535/],
    ['127.0.0.1:99999', /address "127\.0\.0\.1:99999" must be HOST:PORT/],
    ['http://127.0.0.1:7466', /address "http:\/\/127\.0\.0\.1:7466" must be HOST:PORT/],
  ] as const) {
    test(`rejects --listen ${JSON.stringify(value)} as a usage error`, async () => {
      const dataDir = makeDataDir()
      const { code, stderr } = await up(dataDir, '--listen', value)
      equal(code, exitCodes.usage, stderr)
      match(stderr, want)
      removeDirectory(dataDir)
    })
  }

  for (const [args, want] of [
    [['--data', ''], /--data must not be empty/],
    [['--health-address', 'nonsense'], /address "nonsense" must be HOST:PORT/],
    [['--max-workers', '0'], /'0' is invalid.*An integer >= 1 is expected/],
    [['--grace', 'soon'], /'soon' is invalid.*90s, 5m or 1h30m/],
    [['--log-level', 'loud'], /'loud' is invalid.*debug, info, warn, error/],
  ] as const) {
    test(`rejects oarlock up ${args.join(' ')} as a usage error`, async () => {
      const dataDir = makeDataDir()
      const { code, stderr } = await up(dataDir, ...args)
      equal(code, exitCodes.usage, stderr)
      match(stderr, want)
      removeDirectory(dataDir)
    })
  }

  test('reports an address of another machine', async () => {
    const dataDir = makeDataDir()
    const { code, stderr } = await up(dataDir, '--listen', '192.0.2.1:0')
    equal(code, exitCodes.listen, stderr)
    match(stderr, /failed to listen on 192\.0\.2\.1:0, .*\(EADDRNOTAVAIL\)/)
    removeDirectory(dataDir)
  })
})

describe('a role fails to start', () => {
  test('rejects an empty --data instead of filling the working directory', async () => {
    const cwd = makeDataDir()
    mkdirSync(cwd, { recursive: true })
    for (const role of ['stores', 'join-service', 'controller', 'pool']) {
      const { code, text } = await runOarlock([role, '--data', ''], { cwd })
      equal(code, exitCodes.usage, text)
      match(text, /--data must not be empty/)
    }
    deepEqual(readdirSync(cwd), [])
    removeDirectory(cwd)
  })

  test('searches the kubeconfigs that its help names, and reports exactly these', async () => {
    const cwd = makeDataDir()
    // Commands would find this one.
    mkdirSync(join(cwd, '.oarlock'), { recursive: true })
    writeFileSync(join(cwd, '.oarlock', 'kubeconfig'), '')
    const env = { HOME: cwd, KUBECONFIG: undefined, KUBERNETES_SERVICE_HOST: undefined }
    const { code, text } = await runOarlock(['stores', '--data', 'stores'], { cwd, env })
    equal(code, exitCodes.unreachable, text)
    const file = join(cwd, '.kube', 'config')
    const want = `no kubeconfig found: KUBECONFIG is not set, there is no service account of a Pod, and ${file} does not exist`
    ok(text.includes(want), text)
    const help = await runOarlock(['stores', '--help'])
    match(help.text.replace(/\s+/g, ' '), /default: \$KUBECONFIG, the service account of the Pod, ~\/\.kube\/config/)
    removeDirectory(cwd)
  })
})

/** The files of a directory, with their sizes, except those that a running server writes to. */
const filesOf = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(({ name }) => !/\.(db(-wal|-shm|-journal)?|log)$/.test(name))
    .map(({ parentPath, name }) => `${join(parentPath, name)} ${lstatSync(join(parentPath, name)).size}`)
    .sort()

/** Sets the format version of a database and returns the previous one. */
function setVersion(path: string, version: number): number {
  const database = new DatabaseSync(path)
  const { user_version: previous } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  database.exec(`PRAGMA user_version=${version}; PRAGMA wal_checkpoint(TRUNCATE)`)
  database.close()
  return previous
}
