import { deepStrictEqual, equal, ok, rejects } from 'node:assert/strict'
import { closeSync, fsyncSync, ftruncateSync, linkSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type StreamStateFileOptions, streamStateFile } from './index.ts'

type Setup = { path: string; directory: string; uploads: string[]; errors: unknown[]; uploaded(text: string): Promise<void> }

async function withFile(
  work: (setup: Setup, start: (options?: Partial<StreamStateFileOptions>) => ReturnType<typeof streamStateFile>) => Promise<void>,
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
          for (const { resolve } of waiting.filter(one => one.text === text)) resolve()
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

/** As Terraform does it: one descriptor, truncate, one write, fsync. */
function openLikeTerraform(path: string) {
  const fd = openSync(path, 'a+')
  const write = (text: string) => {
    ftruncateSync(fd, 0)
    writeSync(fd, text)
    fsyncSync(fd)
  }
  return { fd, write, close: () => closeSync(fd) }
}

test('every completed version is uploaded, a file renamed into place too', () =>
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

test('a torn file is never uploaded, and flush says so', () =>
  withFile(async ({ path, uploads, uploaded }, start) => {
    const stream = start()
    const engine = openLikeTerraform(path)
    await stream.flush()
    engine.write('{"serial":1}')
    await uploaded('{"serial":1}')
    for (const torn of ['{"serial":2', '']) {
      engine.write(torn)
      await rejects(stream.flush(), /holds no complete state: the engine was cut off/)
    }
    engine.write('{"serial":3}')
    await stream.flush()
    deepStrictEqual(uploads, ['{"serial":1}', '{"serial":3}'])
    engine.close()
  }))

test('a large state written in parts is uploaded once it is whole', () =>
  withFile(async ({ path, uploads, uploaded }, start) => {
    start()
    const whole = JSON.stringify({ serial: 1, text: 'x'.repeat(500_000) })
    const fd = openSync(path, 'a')
    for (let at = 0; at < whole.length; at += 50_000) {
      writeSync(fd, whole.slice(at, at + 50_000))
      await sleep(4)
    }
    closeSync(fd)
    await uploaded(whole)
    equal(uploads.length, 1)
  }))

test('uploads slower than writes: one at a time, the newest wins, flush has the last', () =>
  withFile(async ({ path, uploads }, start) => {
    let running = 0
    let most = 0
    const upload = async () => {
      most = Math.max(most, ++running)
      await sleep(30)
      running--
    }
    const stream = start({ upload })
    const engine = openLikeTerraform(path)
    for (let i = 0; i < 40; i++) {
      engine.write(`{"serial":${i}}`)
      await sleep(3)
    }
    await stream.flush()
    equal(most, 1)
    equal(uploads.at(-1), '{"serial":39}')
    ok(uploads.length >= 2 && uploads.length < 30, `${uploads.length} uploads`)
    engine.close()
  }))

test('a failed upload is tried again; flush rejects while it fails', () =>
  withFile(async ({ path, errors, uploaded }, start) => {
    let failing = true
    const upload = async () => {
      if (failing) throw new Error('the store is away')
    }
    const stream = start({ upload })
    writeFileSync(path, '{"serial":1}')
    await rejects(stream.flush(), { message: 'the store is away' })
    while (errors.length === 0) await sleep(5)
    failing = false
    await uploaded('{"serial":1}')
    await stream.flush()
  }))

test('what the store has already is not uploaded again', () =>
  withFile(async ({ path, uploads }, start) => {
    writeFileSync(path, '{"serial":1}')
    const stream = start({ known: Buffer.from('{"serial":1}') })
    await stream.flush()
    deepStrictEqual(uploads, [])
  }))

test('nothing is uploaded after close', () =>
  withFile(async ({ path, uploads }, start) => {
    const stream = start()
    stream.close()
    writeFileSync(path, '{"serial":1}')
    await sleep(120)
    deepStrictEqual(uploads, [])
  }))

test('without file events a change is seen within 100 ms by looking', () =>
  withFile(async ({ directory, uploaded }, start) => {
    // What is written through another name of a file is no event in this directory.
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

test('from the write to the upload', t =>
  withFile(async ({ path, uploaded }, start) => {
    start()
    const engine = openLikeTerraform(path)
    const tookMs: number[] = []
    for (let i = 0; i < 40; i++) {
      const text = JSON.stringify({ serial: i, text: 'x'.repeat(100_000) })
      engine.write(text)
      const startMs = performance.now()
      await uploaded(text)
      tookMs.push(performance.now() - startMs)
    }
    engine.close()
    tookMs.sort((a, b) => a - b)
    t.diagnostic(`100 KB: median ${tookMs[20]?.toFixed(1)} ms, worst ${tookMs.at(-1)?.toFixed(1)} ms from write to upload`)
    ok((tookMs[20] ?? 0) < 100)
  }))
