import { deepEqual, equal, rejects } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readTar, type TarEntry, writeTar } from './tar.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-tar-'))
after(() => rmSync(base, { recursive: true, force: true }))

const entry = (name: string, text: string): TarEntry => ({ name, size: Buffer.byteLength(text), content: [Buffer.from(text)] })

async function write(file: string, entries: readonly TarEntry[]): Promise<string> {
  const path = join(base, file)
  writeFileSync(path, Buffer.concat(await Array.fromAsync(writeTar(entries))))
  return path
}

const long = `team-a/${'x'.repeat(150)}.log`

test('files are read as they were written, by this code and by tar', async () => {
  const texts = { 'manifest.json': '{}', empty: '', [long]: 'a line\n', block: 'b'.repeat(512), large: 'c'.repeat(200_000) }
  const path = await write(
    'a.tar',
    Object.entries(texts).map(([name, text]) => entry(name, text)),
  )
  const bytes = readFileSync(path)
  const found = (await Array.fromAsync(readTar(path))).map(({ name, offset, size }) => [
    name,
    bytes.toString('utf8', offset, offset + size),
  ])
  deepEqual(found, Object.entries(texts))
  deepEqual(execFileSync('tar', ['tf', path], { encoding: 'utf8' }).trim().split('\n'), Object.keys(texts))
  equal(execFileSync('tar', ['xOf', path, 'large'], { encoding: 'utf8' }), texts.large)
})

test('an archive inside of another one is read by its range', async () => {
  const inner = readFileSync(await write('inner.tar', [entry('a', '1'), entry('b', '22')]))
  const path = await write('outer.tar', [entry('before', 'x'), { name: 'inner.tar', size: inner.length, content: [inner] }])
  const [, { offset, size } = { offset: 0, size: 0 }] = await Array.fromAsync(readTar(path))
  const names = (await Array.fromAsync(readTar(path, { start: offset, end: offset + size }))).map(({ name, size: bytes }) => [name, bytes])
  deepEqual(names, [
    ['a', 1],
    ['b', 2],
  ])
})

test('a content that is shorter than its size is filled, a longer one is an error', async () => {
  const path = await write('short.tar', [{ name: 'a', size: 1_000, content: [Buffer.from('abc')] }, entry('b', 'ok')])
  const bytes = readFileSync(path)
  const [, second] = await Array.fromAsync(readTar(path))
  equal(bytes.toString('utf8', second!.offset, second!.offset + second!.size), 'ok')
  await rejects(write('longer.tar', [{ name: 'a', size: 2, content: [Buffer.from('abc')] }]), /a has more than the 2 bytes/)
})

test('a truncated archive and another file are errors, wherever they are cut', async () => {
  const path = await write('cut.tar', [entry('a', 'a'.repeat(1_000)), entry('b', 'b')])
  for (const length of [0, 100, 512, 1_000, 1_536, 2_048, 2_560, 2_600]) {
    const cut = join(base, `cut-${length}.tar`)
    writeFileSync(cut, readFileSync(path))
    truncateSync(cut, length)
    await rejects(Array.fromAsync(readTar(cut)), /it is cut off/, `${length} bytes`)
  }
  const other = join(base, 'other')
  writeFileSync(other, 'SQLite format 3\0'.padEnd(4_096, 'x'))
  await rejects(Array.fromAsync(readTar(other)), /there is no valid header at byte 0/)
})
