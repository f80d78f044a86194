import { type FileHandle, stat } from 'node:fs/promises'
import { ifMissing } from '../../kubernetes/util/index.ts'
import { withOpenFile } from './open-file.ts'

/** Two numbers of 48 bits: the offset of the first stored byte that has this time, and the milliseconds since the epoch. */
const recordBytes = 12
const numberBytes = 6
/** A time is recorded at most once per second, later in a long log once per 2, 4, 8 s, so that weeks of output take less than 500 KB (invariant 10). */
const baseIntervalMs = 1_000
const recordsPerInterval = 4_096

/** When the parts of a log were stored. A log of an earlier version has no times, and neither has its beginning if a later version continued it. */
export type LogTime = { readonly offset: number; readonly atMs: number }

/** Where the next time of a log is recorded. */
export type TimesState = { readonly records: number; readonly lastMs: number }

export async function recoverTimes(path: string): Promise<TimesState> {
  const size = (await stat(`${path}.times`).catch(ifMissing(undefined)))?.size ?? 0
  return { records: Math.floor(size / recordBytes), lastMs: 0 }
}

/** Records that what is stored from `offset` on is of `atMs`, unless the last time is recent. Written before the bytes of the log are. */
export async function recordTime(path: string, state: TimesState, offset: number, atMs: number): Promise<TimesState> {
  const intervalMs = baseIntervalMs * 2 ** Math.floor(state.records / recordsPerInterval)
  const elapsedMs = atMs - state.lastMs
  if (elapsedMs >= 0 && elapsedMs < intervalMs) return state
  const record = Buffer.alloc(recordBytes)
  record.writeUIntBE(offset, 0, numberBytes)
  record.writeUIntBE(atMs, numberBytes, numberBytes)
  // At the position of the whole records: what a crash has left of another one is overwritten.
  const write = (file: FileHandle) => file.write(record, 0, recordBytes, state.records * recordBytes)
  await withOpenFile(`${path}.times`, 'r+', write).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    await withOpenFile(`${path}.times`, 'wx+', write)
  })
  return { records: state.records + 1, lastMs: atMs }
}

/** The times of a log, by offset. An append that was rolled back is overridden by the one that replaced it. */
export async function readTimes(path: string): Promise<LogTime[]> {
  const bytes = await readTimesFile(path)
  const times: LogTime[] = []
  for (let at = 0; at + recordBytes <= (bytes?.byteLength ?? 0); at += recordBytes) {
    const offset = bytes!.readUIntBE(at, numberBytes)
    while (times.length > 0 && times.at(-1)!.offset >= offset) times.pop()
    times.push({ offset, atMs: bytes!.readUIntBE(at + numberBytes, numberBytes) })
  }
  return times
}

/** Undefined for a log without times. */
export async function readTimesFile(path: string): Promise<Buffer | undefined> {
  return await withOpenFile(`${path}.times`, 'r', file => file.readFile()).catch(ifMissing(undefined))
}

/** The offset of the first byte of `sinceMs` or later; `size` if there is none, and 0 if the log has no times. */
export function offsetSince(times: readonly LogTime[], sinceMs: number, size: number): number {
  if (times.length === 0) return 0
  return Math.min(size, times.find(({ atMs }) => atMs >= sinceMs)?.offset ?? size)
}

/** Prefixes each line with the time of its first byte, for chunks of a log that come one after another from `offset` on. */
export class TimestampPrefixer {
  #at: number
  #isInLine = false

  constructor(offset: number) {
    this.#at = offset
  }

  push(chunk: Buffer, times: readonly LogTime[]): Buffer {
    const parts: Buffer[] = []
    for (let at = 0; at < chunk.byteLength; ) {
      if (!this.#isInLine) parts.push(Buffer.from(`${timeAt(times, this.#at + at)} `))
      const newline = chunk.indexOf(10, at)
      const end = newline < 0 ? chunk.byteLength : newline + 1
      parts.push(chunk.subarray(at, end))
      this.#isInLine = newline < 0
      at = end
    }
    this.#at += chunk.byteLength
    return Buffer.concat(parts)
  }
}

/** `2026-06-01T10:00:00Z`; as many characters of `-` where the time is unknown. */
function timeAt(times: readonly LogTime[], offset: number): string {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (times[middle]!.offset <= offset) low = middle + 1
    else high = middle
  }
  const time = times[low - 1]
  return time === undefined ? '-'.repeat(20) : `${new Date(time.atMs).toISOString().slice(0, 19)}Z`
}
