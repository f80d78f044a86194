import { readdirSync, readFileSync } from 'node:fs'

/** The environments of the processes that this one may read, one variable per line. */
export function readEnvironments(): string {
  const read = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').replaceAll('\0', '\n')
    } catch {
      return ''
    }
  }
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(read)
    .join('\n')
}
