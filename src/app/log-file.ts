import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs'

/** One file and one before it: never more than twice this on disk (invariant 10). */
const maxBytes = 10 * 1024 * 1024

/** A stream for pino that keeps `path` below 10 MiB, and the part before it as `path.1`. A full disk loses lines, never the process. */
export function openLogFile(path: string): { write(line: string): void; close(): void } {
  let file = openSync(path, 'a', 0o600)
  let size = statSync(path).size
  return {
    write(line) {
      try {
        if (size > maxBytes) {
          closeSync(file)
          renameSync(path, `${path}.1`)
          file = openSync(path, 'a', 0o600)
          size = 0
        }
        size += writeSync(file, line)
      } catch {
        // A log that cannot be written must not stop the work that it is about.
      }
    },
    close: () => closeSync(file),
  }
}
