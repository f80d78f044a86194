import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

/**
 * The last `maxBytes` of what a worker printed; empty if it cannot be read. Programs of a Run at level Process can write to this file, and replace it: it may
 * be of any size, or a pipe that nothing writes to.
 */
export function tailOf(path: string, maxBytes: number): string {
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const stats = fstatSync(file)
    if (!stats.isFile()) return ''
    const bytes = Buffer.alloc(Math.min(stats.size, maxBytes))
    const read = readSync(file, bytes, 0, bytes.length, stats.size - bytes.length)
    return bytes.toString('utf8', 0, read).trim()
  } catch {
    return ''
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/**
 * The lines of `output` that `oarlock worker` and Node print, without what else is in the file: programs of a Run at level Process can write to it, and an
 * error that ends a worker before it handles errors quotes the source.
 */
export const linesOfWorker = (output: string): string =>
  output
    .split('\n')
    .filter(line => /^(oarlock(?: worker)?: |\{"time":|FATAL ERROR: | {4}at )/.test(line))
    .join('\n')

/** The last error that `oarlock worker` printed. Other output may contain anything, and is not for the status of an object. */
export const lastErrorOf = (output: string): string | undefined => [...output.matchAll(/^oarlock(?: worker)?: (.{1,500})/gm)].at(-1)?.[1]
