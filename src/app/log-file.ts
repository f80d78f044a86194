import { closeSync, openSync, renameSync, statSync, writeSync } from 'node:fs'

/** Limit of each of two files (invariant 10). */
const maxBytes = 10 * 1024 * 1024

/** A stream for pino that rotates `path` to `path.1` at 10 MiB. A full disk loses lines and does not end the process. */
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
        // A log that cannot be written must not stop the process.
      }
    },
    close: () => closeSync(file),
  }
}
