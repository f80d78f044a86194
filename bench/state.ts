/** The state store: event loop delay of the process that owns it, and the time until a state file that an engine wrote is uploaded. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStateStore, type StateStore, streamStateFile } from '../src/stores/state/index.ts'
import type { Bench } from './run.ts'

const engines = 12
const writesPerEngine = 100
const intervalMs = 100
const stateOf = (engine: number, serial: number) => JSON.stringify({ engine, serial, text: 'resource '.repeat(11_000) })

export async function bench(): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-state-'))
  const store = await openStateStore({ directory: join(directory, 'state'), key: randomBytes(32) })
  try {
    const about = `${engines} engines write 100 KB every ${intervalMs} ms each; streaming: one engine, from the end of its write to the end of the upload`
    return { title: 'State store', about, rows: [...(await measureWrites(store)), await measureStreaming(store, directory)] }
  } finally {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function measureWrites(store: StateStore): Promise<Bench['rows']> {
  const durationsMs: number[] = []
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await Promise.all(
    Array.from({ length: engines }, async (_, engine) => {
      await sleep((engine * intervalMs) / engines)
      for (let serial = 0; serial < writesPerEngine; serial++) {
        const startMs = performance.now()
        await write(store, `uid-${engine}`, Buffer.from(stateOf(engine, serial)))
        durationsMs.push(performance.now() - startMs)
        await sleep(Math.max(0, intervalMs - (performance.now() - startMs)))
      }
    }),
  )
  delay.disable()
  const ms = (ns: number) => round(ns / 1e6)
  return [
    { what: 'event loop delay', 'p50 ms': ms(delay.percentile(50)), 'p99 ms': ms(delay.percentile(99)), 'max ms': ms(delay.max) },
    row('write', durationsMs),
  ]
}

async function measureStreaming(store: StateStore, directory: string): Promise<Bench['rows'][number]> {
  const path = join(directory, 'terraform.tfstate')
  let uploaded: (text: string) => void = () => undefined
  const upload = async (bytes: Buffer) => {
    await write(store, 'uid-stream', bytes)
    uploaded(bytes.toString())
  }
  const stream = streamStateFile({ path, upload, onError: error => console.error(String(error)) })
  const durationsMs: number[] = []
  for (let serial = 0; serial < writesPerEngine; serial++) {
    const text = stateOf(0, serial)
    const arrived = new Promise<void>(resolve => {
      uploaded = got => got === text && resolve()
    })
    writeFileSync(path, text)
    const startMs = performance.now()
    await arrived
    durationsMs.push(performance.now() - startMs)
  }
  stream.close()
  return row('streaming', durationsMs)
}

async function write(store: StateStore, stackUid: string, bytes: Buffer): Promise<void> {
  const { kind } = await store.writeVersion({ stackUid, runName: 'run-1', epoch: 1, bytes })
  if (kind !== 'accepted') throw new Error(`a write was ${kind}`)
}

function row(what: string, durationsMs: number[]): Bench['rows'][number] {
  const sorted = durationsMs.toSorted((a, b) => a - b)
  const at = (share: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
  return { what, 'p50 ms': at(0.5), 'p99 ms': at(0.99), 'max ms': at(1) }
}

const round = (value: number) => Math.round(value * 10) / 10
