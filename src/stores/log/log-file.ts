import { type FileHandle, stat, truncate } from 'node:fs/promises'
import { ifMissing } from '../../kubernetes/util/index.ts'
import { emptyLog, type LogState } from './decide-append.ts'
import { withOpenFile } from './open-file.ts'

const newline = 10
const chunkBytes = 64 * 1024
/** The meta file has a fixed size, so that it can be overwritten in place. */
const metaBytes = 512

/**
 * Appends `output` to a log and records the state before and after. The meta file is written first: whichever of the two states matches the
 * size of the log is the present one (see {@link recoverLog}).
 */
export async function appendToLog(path: string, before: LogState, after: LogState, output: Buffer): Promise<void> {
  await writeMeta(path, before, after)
  try {
    await writeAt(`${path}.log`, before.size, output)
  } catch (error) {
    // The part that a full disk accepted must not remain behind the next, shorter append.
    await truncate(`${path}.log`, before.size).catch(() => undefined)
    throw error
  }
}

/**
 * Reads the state of a log from disk. The meta file contains the state before and after the last append; the log's size shows whether it
 * completed. An interrupted append is rolled back, and its sender, which has no response, sends it again.
 */
export async function recoverLog(path: string, maxBytes: number): Promise<LogState> {
  // Any other error, such as too many open files, must not look like a log without a state: its bytes would be appended twice.
  const size = (await stat(`${path}.log`).catch(ifMissing(undefined)))?.size
  const meta = await withOpenFile(`${path}.meta`, 'r', file => file.readFile('utf8')).catch(ifMissing(undefined))
  if (meta === undefined) return size === undefined ? emptyLog : { ...emptyLog, received: size, size }
  let states: [LogState, LogState]
  try {
    states = JSON.parse(meta) as [LogState, LogState]
  } catch {
    // The meta file was corrupted by a power failure: the stored bytes are kept and count as received.
    return { ...emptyLog, received: size ?? 0, size: size ?? 0 }
  }
  const [before, after] = states
  const stored = size ?? 0
  if (stored === after.size) return after
  if (stored >= before.size) {
    await truncate(`${path}.log`, before.size)
    return before
  }
  const mark = Buffer.from('\n[oarlock] part of this log was lost when the machine stopped\n')
  const state = { ...before, size: stored + mark.byteLength, lineBytes: 0, cutBytes: 0 }
  if (stored + mark.byteLength > maxBytes + metaBytes) return { ...before, size: stored }
  await writeAt(`${path}.log`, stored, mark)
  await writeMeta(path, state, state)
  return state
}

/** Reads up to `length` bytes from `position`; empty if there is no log. */
export async function readLog(path: string, position: number, length: number): Promise<Buffer> {
  if (length <= 0) return Buffer.alloc(0)
  const bytes = await withOpenFile(`${path}.log`, 'r', async file => {
    const buffer = Buffer.allocUnsafe(length)
    let done = 0
    while (done < length) {
      const { bytesRead } = await file.read(buffer, done, length - done, position + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return buffer.subarray(0, done)
  }).catch(ifMissing(undefined))
  return bytes ?? Buffer.alloc(0)
}

/** The offset at which the last `lines` lines of a log of `size` bytes begin. */
export async function findTail(path: string, size: number, lines: number): Promise<number> {
  if (lines === 0) return size
  let remaining = lines
  for (let end = size; end > 0; ) {
    const begin = Math.max(0, end - chunkBytes)
    const bytes = await readLog(path, begin, end - begin)
    for (let at = bytes.byteLength - 1; at >= 0; at--) {
      // The newline at the very end terminates the last line and does not begin another.
      if (bytes[at] !== newline || begin + at === size - 1) continue
      if (--remaining <= 0) return begin + at + 1
    }
    end = begin
  }
  return 0
}

async function writeMeta(path: string, before: LogState, after: LogState): Promise<void> {
  await writeAt(`${path}.meta`, 0, formatMeta(before, after))
}

/** The content of the meta file of a log. */
export const formatMeta = (before: LogState, after = before): Buffer => Buffer.from(JSON.stringify([before, after]).padEnd(metaBytes))

/** Writes without truncating: after a kill the file has the old bytes or the new ones. */
async function writeAt(path: string, position: number, bytes: Buffer): Promise<void> {
  const write = async (file: FileHandle) => {
    for (let done = 0; done < bytes.byteLength; ) {
      const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, position + done)
      done += bytesWritten
    }
  }
  await withOpenFile(path, 'r+', write).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    await withOpenFile(path, 'wx+', write)
  })
}
