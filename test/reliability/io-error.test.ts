import { equal, match, ok, rejects } from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { startServer } from '../../src/kubernetes/server/index.ts'
import { mountTmpfs, tmpfsUnavailable } from '../support/mount-tmpfs.ts'
import { startServerChild } from './server-child.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const patch = 'application/merge-patch+json'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-io-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** Builds failing-disk.c; returns the reason when this is not possible here. */
function build(): { library: string } | string {
  if (process.platform !== 'linux') return 'needs Linux for LD_PRELOAD'
  if (spawnSync('gcc', ['--version']).error) return 'needs gcc'
  const library = join(directory, 'failing-disk.so')
  const source = join(import.meta.dirname, 'failing-disk.c')
  const { status, stderr } = spawnSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' })
  return status === 0 ? { library } : `gcc cannot build failing-disk.c: ${stderr}`
}

const built = build()

describe('a failing disk', { skip: typeof built === 'string' && built }, () => {
  for (const what of ['write', 'sync'] as const) {
    test(`on ${what}: writes get an error, reads continue, and writes continue when the disk has recovered (invariant 5)`, async () => {
      if (typeof built === 'string') return
      const dataDir = join(directory, what)
      const control = join(directory, `${what}.control`)
      const env = { LD_PRELOAD: built.library, FAILING_DISK: control }
      let server = await startServerChild(dataDir, env)
      try {
        const acknowledged = new Map<string, string>()
        const unacknowledged = new Map<string, string>()
        for (const name of ['a', 'b']) equal((await server.call('POST', maps, { metadata: { name }, data: { value: '0' } })).code, 201)
        for (let round = 1; round <= 3; round++) {
          writeFileSync(control, what)
          for (const name of ['a', 'b']) {
            const { code, body } = await server.call('PATCH', `${maps}/${name}`, { data: { value: `lost${round}` } }, patch)
            equal(code, 500)
            match(body.message ?? '', /the write could not be stored \(disk I\/O error\): read the object before you retry/)
            equal(
              (await server.call('GET', `${maps}/${name}`)).body.data?.value,
              acknowledged.get(name) ?? '0',
              'a failed write is not visible',
            )
            unacknowledged.set(name, `lost${round}`)
          }
          rmSync(control)
          for (const name of ['a', 'b']) {
            if (round === 3 && name === 'b') continue
            const { code } = await server.call('PATCH', `${maps}/${name}`, { data: { value: `kept${round}` } }, patch)
            equal(code, 200)
            acknowledged.set(name, `kept${round}`)
            unacknowledged.delete(name)
          }
          if (round < 2) continue
          await server.kill()
          server = await startServerChild(dataDir, env)
          for (const [name, value] of acknowledged) {
            const found = (await server.call('GET', `${maps}/${name}`)).body.data?.value
            ok(found === value || (found !== undefined && found === unacknowledged.get(name)), `${name}: ${found}, acknowledged ${value}`)
          }
        }
      } finally {
        await server.kill()
      }
    })
  }

  test('at startup, the error names the file', async () => {
    if (typeof built === 'string') return
    const control = join(directory, 'start.control')
    writeFileSync(control, 'write')
    await rejects(startServerChild(join(directory, 'start'), { LD_PRELOAD: built.library, FAILING_DISK: control }), (error: Error) => {
      match(error.message, /oarlock\.db cannot be read or written \(disk I\/O error\): check the disk/)
      return true
    })
  })
})

test('a read-only disk is a start error, and the server starts when it is writable again', { skip: tmpfsUnavailable() }, async () => {
  const disk = mountTmpfs(32 * 1024 * 1024)
  try {
    const start = () => startServer({ dataDir: disk.path, listen: { port: 0 } })
    await (await start()).close()
    disk.setReadOnly(true)
    await rejects(start(), { code: 'DataDirectoryUnwritable', message: /oarlock\.db is on a read-only file system: / })
    disk.setReadOnly(false)
    await (await start()).close()
  } finally {
    await disk.unmount()
  }
})

test('a directory without write permission is a start error', {
  skip: process.getuid?.() === 0 && 'root may write everywhere',
}, async () => {
  const dataDir = join(directory, 'locked')
  await (await startServer({ dataDir, listen: { port: 0 } })).close()
  execFileSync('chmod', ['-R', 'a-w', dataDir])
  try {
    await rejects(startServer({ dataDir, listen: { port: 0 } }), { code: 'DataDirectoryUnwritable' })
  } finally {
    execFileSync('chmod', ['-R', 'u+w', dataDir])
  }
})
