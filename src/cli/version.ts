import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The version in package.json; the same path from `src/cli` and from `dist/cli`. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8')) as { version: string }).version
}
