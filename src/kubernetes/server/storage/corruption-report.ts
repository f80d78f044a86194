import { dirname } from 'node:path'
import type { Damage } from './read-rows.ts'
import { ServerStartError } from './start-error.ts'

const named = 5

/** Gathers what is damaged, names the first of it and counts the rest. */
export class DamageReport {
  readonly #named: string[] = []
  #rows = 0
  #isRowsKnown = true
  #count = 0

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** At least so many objects cannot be read. */
  get rows(): number {
    return this.#rows
  }

  add({ what, rows }: Damage): void {
    if (this.#named.length < named) this.#named.push(what)
    this.#count++
    this.#rows += rows ?? 0
    if (rows === undefined) this.#isRowsKnown = false
  }

  /** Such as `at least 3 objects are damaged: …`. */
  get text(): string {
    const more = this.#count - this.#named.length
    const details = `${this.#named.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
    if (this.#rows === 0 && this.#isRowsKnown) return details
    const rows = this.#isRowsKnown ? `${this.#rows}` : `at least ${this.#rows}`
    return `${rows} object${rows === '1' ? ' is' : 's are'} damaged: ${details}`
  }

  /** @param readable how many objects are sound. */
  toError(file: string, readable: number): ServerStartError {
    return new ServerStartError(
      'DataCorrupt',
      `${file} is damaged: ${readable} objects can be read, but ${this.text}. Nothing was changed. ${adviceFor(file)}`,
    )
  }
}

/** What to do about a damaged database. */
export function adviceFor(file: string): string {
  const data = dirname(file)
  return (
    `Restore a backup (oarlock restore BACKUP --data ${data} --force), ` +
    `or keep what can be read (oarlock restore ${file} --data NEW_DIRECTORY --salvage)`
  )
}
