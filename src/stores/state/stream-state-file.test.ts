import { deepStrictEqual, equal, ok, rejects } from 'node:assert/strict'
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../test/support/eventually.ts'
import { type StreamStateFileOptions, streamStateFile } from './index.ts'

type Fixture = { path: string; directory: string; uploads: string[]; errors: unknown[]; uploaded(text: string): Promise<void> }

async function withFile(
  work: (fixture: Fixture, start: (options?: Partial<StreamStateFileOptions>) => ReturnType<typeof streamStateFile>) => Promise<void>,
) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-stream-'))
  const path = join(directory, 'terraform.tfstate')
  const uploads: string[] = []
  const errors: unknown[] = []
  const waiting: { text: string; resolve: () => void }[] = []
  const streams: ReturnType<typeof streamStateFile>[] = []
  const uploaded = (text: string) => new Promise<void>(resolve => (uploads.includes(text) ? resolve() : waiting.push({ text, resolve })))
  try {
    await work({ path, directory, uploads, errors, uploaded }, options => {
      const upload = options?.upload
      const stream = streamStateFile({
        ...{ path, onError: error => errors.push(error), retryMs: 20, ...options },
        upload: async bytes => {
          await upload?.(bytes)
          const text = bytes.toString()
          uploads.push(text)
          for (const { resolve } of waiting.filter(waiter => waiter.text === text)) resolve()
        },
      })
      streams.push(stream)
      return stream
    })
  } finally {
    for (const stream of streams) stream.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Writes as Terraform does: one descriptor, truncate, one write, fsync. */
function openLikeTerraform(path: string) {
  const fd = openSync(path, 'a+')
  const write = (text: string) => {
    ftruncateSync(fd, 0)
    writeSync(fd, text)
    fsyncSync(fd)
  }
  return { fd, write, close: () => closeSync(fd) }
}

test('uploads every complete version, including a file that is renamed into place', () =>
  withFile(async ({ path, directory, uploads, uploaded }, start) => {
    const stream = start()
    const engine = openLikeTerraform(path)
    for (let i = 0; i < 5; i++) {
      engine.write(`{"serial":${i}}`)
      await uploaded(`{"serial":${i}}`)
    }
    engine.close()
    writeFileSync(join(directory, 'next'), '{"serial":"renamed"}')
    renameSync(join(directory, 'next'), path)
    await uploaded('{"serial":"renamed"}')
    await stream.flush()
    equal(uploads.length, 6)
  }))

test('never uploads an incomplete file, and flush rejects', () =>
  withFile(async ({ path, uploads, uploaded }, start) => {
    const stream = start()
    const engine = openLikeTerraform(path)
    await stream.flush()
    engine.write('{"serial":1}')
    await uploaded('{"serial":1}')
    for (const incomplete of ['{"serial":2', '']) {
      engine.write(incomplete)
      await rejects(stream.flush(), /contains no complete state, .*: the engine was interrupted/)
    }
    engine.write('{"serial":3}')
    await stream.flush()
    deepStrictEqual(uploads, ['{"serial":1}', '{"serial":3}'])
    engine.close()
  }))

for (const rest of ['', '{"serial":2', undefined])
  test(`a version whose upload failed is uploaded although the engine left ${rest === undefined ? 'no file' : `${JSON.stringify(rest)} in the file`} since`, () =>
    withFile(async ({ path, uploads, errors }, start) => {
      let isDown = true
      const upload = async () => {
        if (isDown) throw new Error('the store is down')
      }
      const stream = start({ upload, retryMs: 60_000 })
      const engine = openLikeTerraform(path)
      engine.write('{"serial":1}')
      await eventually(() => errors.length > 0, 'an upload to fail')
      if (rest === undefined) rmSync(path)
      else engine.write(rest)
      await rejects(stream.flush(), /the store is down/)
      isDown = false
      if (rest === undefined) await stream.flush()
      else await rejects(stream.flush(), /contains no complete state/)
      deepStrictEqual(uploads, ['{"serial":1}'])
      engine.close()
    }))

test('a version is kept while its upload takes long or has failed, and what is kept is never older than what is stored', () =>
  withFile(async ({ path, directory, uploaded }, start) => {
    const keptPath = join(directory, 'kept')
    const kept = () => (existsSync(keptPath) ? readFileSync(keptPath, 'utf8') : undefined)
    let store = Promise.withResolvers<void>()
    const sent: string[] = []
    const stream = start({
      keptPath,
      keepAfterMs: 20,
      retryMs: 60_000,
      upload: bytes => {
        sent.push(`${bytes}, kept: ${kept()}`)
        return store.promise
      },
    })
    const engine = openLikeTerraform(path)
    engine.write('{"serial":1}')
    await eventually(() => kept() === '{"serial":1}', 'the version to be kept')
    engine.write('{"serial":2}')
    store.reject(new Error('the store is down'))
    await eventually(() => sent.length === 2, 'the next version to be sent')
    store.promise.catch(() => {})
    store = Promise.withResolvers<void>()
    const flushed = stream.flush()
    await eventually(() => sent.length === 3, 'the next version to be sent again')
    equal(kept(), '{"serial":2}')
    store.resolve()
    await flushed
    await uploaded('{"serial":2}')
    equal(kept(), undefined)
    deepStrictEqual(sent, ['{"serial":1}, kept: undefined', '{"serial":2}, kept: {"serial":2}', '{"serial":2}, kept: {"serial":2}'])
    engine.close()
  }))

test('uploads a large state that is written in parts once it is complete', () =>
  withFile(async ({ path, uploads, uploaded }, start) => {
    start()
    const whole = JSON.stringify({ serial: 1, text: 'x'.repeat(500_000) })
    const fd = openSync(path, 'a')
    for (let at = 0; at < whole.length; at += 50_000) {
      writeSync(fd, whole.slice(at, at + 50_000))
      await sleep(4) // The parts must arrive as separate file events.
    }
    closeSync(fd)
    await uploaded(whole)
    equal(uploads.length, 1)
  }))

test('uploads one version at a time and skips all but the newest when uploads are slower than writes', () =>
  withFile(async ({ path, uploads }, start) => {
    let running = 0
    let maxRunning = 0
    const upload = async () => {
      maxRunning = Math.max(maxRunning, ++running)
      await sleep(30) // An upload that takes longer than ten writes.
      running--
    }
    const stream = start({ upload })
    const engine = openLikeTerraform(path)
    for (let i = 0; i < 40; i++) {
      engine.write(`{"serial":${i}}`)
      await sleep(3) // Writes must arrive as separate file events.
    }
    await stream.flush()
    equal(maxRunning, 1)
    equal(uploads.at(-1), '{"serial":39}')
    ok(uploads.length >= 2 && uploads.length < 30, `${uploads.length} uploads`)
    engine.close()
  }))

test('retries a failed upload, and flush rejects while it fails', () =>
  withFile(async ({ path, errors, uploaded }, start) => {
    let failing = true
    const upload = async () => {
      if (failing) throw new Error('the store does not respond')
    }
    const stream = start({ upload })
    writeFileSync(path, '{"serial":1}')
    await rejects(stream.flush(), { message: 'the store does not respond' })
    await eventually(() => errors.length > 0, 'a failed upload')
    failing = false
    await uploaded('{"serial":1}')
    await stream.flush()
  }))

test('does not upload content that is stored already', () =>
  withFile(async ({ path, uploads }, start) => {
    writeFileSync(path, '{"serial":1}')
    const stream = start({ known: Buffer.from('{"serial":1}') })
    await stream.flush()
    deepStrictEqual(uploads, [])
  }))

test('uploads nothing after close', () =>
  withFile(async ({ path, uploads }, start) => {
    const stream = start()
    stream.close()
    writeFileSync(path, '{"serial":1}')
    await sleep(120) // Real time: two intervals of the poll, which must not run.
    deepStrictEqual(uploads, [])
  }))

test('detects a change by polling when there is no file event', () =>
  withFile(async ({ directory, uploaded }, start) => {
    // A write through another link of the file causes no event in this directory.
    const elsewhere = mkdtempSync(join(tmpdir(), 'oarlock-stream-target-'))
    try {
      const target = join(elsewhere, 'state')
      writeFileSync(target, '{"serial":0}')
      linkSync(target, join(directory, 'terraform.tfstate'))
      start()
      await uploaded('{"serial":0}')
      writeFileSync(target, '{"serial":1}')
      await uploaded('{"serial":1}')
    } finally {
      rmSync(elsewhere, { recursive: true })
    }
  }))
