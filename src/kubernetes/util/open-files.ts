import { readFileSync } from 'node:fs'

/** How many files the process may have open (RLIMIT_NOFILE). Known on Linux; elsewhere Node raises the limit at its start and it is assumed to be sufficient. */
export function openFileLimit(): number {
  try {
    const [, text] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
    return text === undefined ? Number.POSITIVE_INFINITY : Number(text)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** What an operator can do about an error, if its reason is that the process, or the machine, has too many open files; otherwise undefined. */
export function openFilesError(error: unknown): string | undefined {
  const { code, message = '' } = (error ?? {}) as Partial<NodeJS.ErrnoException>
  if (code === 'ENFILE') return 'the machine has too many open files: raise fs.file-max'
  // A thread that cannot be started has another code: ERR_WORKER_INIT_FAILED.
  if (code !== 'EMFILE' && !message.endsWith(' EMFILE')) return undefined
  return `the process has its maximum of ${limitAtStart} open files: raise its limit (ulimit -n, LimitNOFILE of systemd)`
}

/** The resident set size of this process. It is read from a file: without a free one, the last known value. */
export function residentBytes(): number {
  try {
    lastResidentBytes = process.memoryUsage.rss()
  } catch (error) {
    if (openFilesError(error) === undefined) throw error
  }
  return lastResidentBytes
}
let lastResidentBytes = 0

/** Without free files the limit cannot be read. */
const limitAtStart = openFileLimit()
