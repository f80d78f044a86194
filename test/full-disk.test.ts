/** `oarlock up` on a disk that is read-only or full: it reports the reason, exits as documented, and loses nothing. */
import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { exitCodes } from '../src/cli/exit-codes.ts'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import type { StatusError } from '../src/kubernetes/object/index.ts'
import { checkMarker, storeMarker, up, validSpec } from './support/data-directory.ts'
import { type Disk, mountTmpfs, tmpfsUnavailable } from './support/mount-tmpfs.ts'
import { startOarlock } from './support/oarlock-process.ts'
import { StackFixture } from './support/stacks.ts'

describe('a read-only or full disk', { concurrency: 3 }, () => {
  const skip = tmpfsUnavailable() ?? false
  const mounted: Disk[] = []
  const mount = (bytes: number): Disk => {
    const disk = mountTmpfs(bytes)
    mounted.push(disk)
    return disk
  }
  after(async () => {
    for (const disk of mounted) await disk.unmount()
  })

  test('exits with 7 for a read-only data directory, and starts once it is writable', { skip }, async () => {
    const disk = mount(24 * 1024 * 1024)
    const first = await startOarlock(disk.path)
    await storeMarker(first)
    equal(await first.stop(), 0)
    disk.setReadOnly(true)
    const { code, stderr } = await up(disk.path)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, /failed to write/)
    match(stderr, /check its owner and mode, or choose another/)
    disk.setReadOnly(false)
    await checkMarker(disk.path)
  })

  test('exits with 7 when there is no space for a new data directory', { skip }, async () => {
    const disk = mount(32 * 1024)
    const { code, stderr } = await up(join(disk.path, 'data'))
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, /full|no room/i)
    match(stderr, /free some space/)
  })

  test('rejects writes and serves reads on a full disk, exits with 7 when started on it, and loses nothing', { skip }, async () => {
    const disk = mount(24 * 1024 * 1024)
    const dataDir = join(disk.path, 'data')
    const ballast = join(disk.path, 'ballast')
    const first = await startOarlock(dataDir)
    await storeMarker(first)
    fill(ballast)
    const configMaps = first.client.resource(configMapResource)
    const acknowledged: string[] = []
    let rejection: StatusError | undefined
    for (let i = 0; i < 200 && !rejection; i++) {
      const metadata = { name: `filler-${i}`, namespace: 'default' }
      await configMaps.create({ metadata, data: { text: 'x'.repeat(100_000) } }).then(
        () => acknowledged.push(metadata.name),
        error => (rejection = error),
      )
    }
    match(rejection?.message ?? 'no write was rejected', /disk of the data directory is full/)
    equal(rejection?.code, 507)
    equal((await configMaps.get('marker', { namespace: 'default' })).data?.what, 'stored', 'reads continue')
    await first.kill()

    const { code, stderr } = await up(dataDir)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, /full|no room/i)
    match(stderr, /free some space/)

    writeFileSync(ballast, '')
    const restarted = await startOarlock(dataDir)
    const names = new Set(
      (await restarted.client.resource(configMapResource).listAll({ namespace: 'default' })).items.map(o => o.metadata.name),
    )
    deepEqual(
      acknowledged.filter(name => !names.has(name)),
      [],
      'acknowledged writes were lost (invariant 5)',
    )
    const stacks = new StackFixture(restarted.client)
    await stacks.create('after', validSpec)
    await stacks.untilReady('after')
    equal(await restarted.stop(), 0)
    await checkMarker(dataDir)
  })

  test('while the disk is full, objects and states are rejected and /readyz names the reason; all of it works again without a restart', {
    skip,
  }, async () => {
    const disk = mount(48 * 1024 * 1024)
    const dataDir = join(disk.path, 'data')
    const ballast = join(disk.path, 'ballast')
    const { client, httpUrl, output, stop } = await startOarlock(dataDir)
    const stacks = new StackFixture(client)
    await stacks.create('before', validSpec)
    await stacks.untilReady('before')
    const configMaps = client.resource(configMapResource)
    const acknowledged: string[] = []
    const writeMap = async (name: string) => {
      await configMaps.create({ metadata: { name, namespace: 'default' }, data: { text: 'x'.repeat(100_000) } })
      acknowledged.push(name)
    }
    let serial = 0
    /** What does not compress: states are stored compressed. */
    const writeState = async () => {
      const body = { version: 4, serial: ++serial, lineage: 'of-the-test', resources: [], text: randomBytes(150_000).toString('hex') }
      await client.request({ method: 'POST', path: '/state/default/before', body })
    }
    const readState = async () =>
      ((await (await client.request({ method: 'GET', path: '/state/default/before' })).json()) as { serial: number }).serial
    await writeState()
    fill(ballast)
    for (const [what, write, rejected] of [
      ['object', () => writeMap(`filler-${acknowledged.length}`), /disk of the data directory is full: nothing was written/],
      ['state', writeState, /disk .*full|no space/i],
    ] as const) {
      let rejection: Error | undefined
      for (let i = 0; i < 200 && !rejection; i++) await write().catch((error: Error) => (rejection = error))
      match(rejection?.message ?? `no ${what} was rejected`, rejected)
    }
    const stored = serial - 1
    equal(await readState(), stored)
    const reason = /less than 1 MiB is free on the disk of the data directory: writes are rejected when it is full, reads continue/
    match(await get(`${httpUrl}/readyz`), new RegExp(`^503 .*${reason.source}`))
    equal((await get(`${httpUrl}/livez`)).slice(0, 3), '200', output())
    await rejects(client.request({ method: 'GET', path: '/readyz' }), reason)

    writeFileSync(ballast, '')
    equal((await get(`${httpUrl}/readyz`)).slice(0, 3), '200')
    await client.request({ method: 'GET', path: '/readyz' })
    await writeMap('after')
    await writeState()
    equal(await readState(), serial)
    await stacks.create('after', validSpec)
    await stacks.untilReady('after')
    const names = new Set((await configMaps.listAll({ namespace: 'default' })).items.map(({ metadata }) => metadata.name))
    deepEqual(
      acknowledged.filter(name => !names.has(name)),
      [],
    )
    equal(await stop(), 0)
  })
})

/** The status and the text of a response. */
async function get(url: string): Promise<string> {
  const response = await fetch(url)
  return `${response.status} ${await response.text()}`
}

/** Fills the disk. */
function fill(path: string): void {
  for (let bytes = 1 << 20; bytes >= 4096; ) {
    try {
      writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' })
    } catch {
      bytes >>= 1
    }
  }
}
