import { deepEqual, equal, notEqual, rejects } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { writeOciArchive } from './oci-archive.ts'

const folder = mkdtempSync(join(tmpdir(), 'oarlock-oci-archive-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A layer whose files were created in the order of `names`, at another time. */
function layer(name: string, names: readonly string[], atSeconds: number): string {
  const directory = join(folder, name)
  mkdirSync(join(directory, 'usr/bin'), { recursive: true })
  for (const file of names) {
    writeFileSync(join(directory, 'usr/bin', file), `program ${file}\n`)
    chmodSync(join(directory, 'usr/bin', file), 0o755)
    utimesSync(join(directory, 'usr/bin', file), atSeconds, atSeconds)
  }
  symlinkSync('usr/bin', join(directory, 'bin'))
  return directory
}

const write = (directory: string, output: string, createdAtSeconds = 1_700_000_000) =>
  writeOciArchive({
    name: 'localhost/example:1',
    layers: [{ description: 'programs', directory }],
    config: { User: '65532:65532', Entrypoint: ['/bin/a'] },
    architecture: 'amd64',
    createdAtSeconds,
    output: join(folder, output),
  })

const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

test('the same files give the same bytes, whatever their times and the order in which they were created', async () => {
  const first = await write(layer('first', ['a', 'b'], 1_000), 'first.tar')
  const second = await write(layer('second', ['b', 'a'], 2_000_000), 'second.tar')
  equal(first.digest, second.digest)
  deepEqual(readFileSync(join(folder, 'first.tar')), readFileSync(join(folder, 'second.tar')))
  notEqual((await write(layer('third', ['a', 'c'], 1_000), 'third.tar')).digest, first.digest)
})

test('the archive has the manifest, the config and the layers under their digests, and no other blob', async () => {
  const { digest, sizeBytes } = await write(layer('digests', ['a'], 1_000), 'digests.tar')
  equal(readFileSync(join(folder, 'digests.tar')).length, sizeBytes)
  const unpacked = join(folder, 'unpacked')
  mkdirSync(unpacked)
  execFileSync('tar', ['-xf', join(folder, 'digests.tar'), '-C', unpacked])
  const blob = (name: string) => readFileSync(join(unpacked, 'blobs/sha256', name.slice('sha256:'.length)))
  const json = (name: string) => JSON.parse(blob(name).toString('utf8'))
  const index = JSON.parse(readFileSync(join(unpacked, 'index.json'), 'utf8'))
  equal(index.manifests[0].digest, digest)
  equal(index.manifests[0].annotations['io.containerd.image.name'], 'localhost/example:1')
  const manifest = json(digest)
  const config = json(manifest.config.digest)
  for (const { digest: name, size } of [index.manifests[0], manifest.config, ...manifest.layers]) {
    equal(sha256(blob(name)), name)
    equal(blob(name).length, size)
  }
  deepEqual(config.rootfs.diff_ids, [sha256(execFileSync('gzip', ['-dc'], { input: blob(manifest.layers[0].digest) }))])
  deepEqual(
    [config.os, config.architecture, config.created, config.config.User],
    ['linux', 'amd64', '2023-11-14T22:13:20.000Z', '65532:65532'],
  )
  equal(
    execFileSync('ls', [join(unpacked, 'blobs/sha256')], { encoding: 'utf8' })
      .trim()
      .split('\n').length,
    3,
  )
  const listing = execFileSync('tar', ['-tvz', '--full-time'], {
    input: blob(manifest.layers[0].digest),
    encoding: 'utf8',
    env: { TZ: 'UTC' },
  })
  equal(
    listing
      .split('\n')
      .filter(line => line !== '' && !/ 0\/0 .* 2023-11-14 22:13:20 /.test(line))
      .join('\n'),
    '',
  )
})

test('a layer that does not exist leaves no archive', async () => {
  await rejects(write(join(folder, 'missing'), 'missing.tar'), /missing/)
  deepEqual([existsSync(join(folder, 'missing.tar')), existsSync(join(folder, 'missing.tar.partial'))], [false, false])
})
