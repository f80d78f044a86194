import { dirname } from 'node:path'
import type { Corruption } from './read-rows.ts'
import { ServerStartError } from './start-error.ts'

const maxListed = 5

/** Collects corruptions: names the first few and counts the rest. */
export class CorruptionReport {
  readonly #listed: string[] = []
  #rows = 0
  #isRowCountExact = true
  #count = 0

  get isEmpty(): boolean {
    return this.#count === 0
  }

  /** At least this many objects cannot be read. */
  get rows(): number {
    return this.#rows
  }

  add({ what, rows }: Corruption): void {
    if (this.#listed.length < maxListed) this.#listed.push(what)
    this.#count++
    this.#rows += rows ?? 0
    if (rows === undefined) this.#isRowCountExact = false
  }

  /** Such as `at least 3 objects are corrupt: …`. */
  get text(): string {
    const more = this.#count - this.#listed.length
    const details = `${this.#listed.join('; ')}${more > 0 ? `; and ${more} more` : ''}`
    if (this.#rows === 0 && this.#isRowCountExact) return details
    const rows = this.#isRowCountExact ? `${this.#rows}` : `at least ${this.#rows}`
    return `${rows} object${rows === '1' ? ' is' : 's are'} corrupt: ${details}`
  }

  /** @param readable how many objects are intact. */
  toError(file: string, readable: number): ServerStartError {
    return new ServerStartError(
      'DataCorrupt',
      `${file} is corrupt: ${readable} objects can be read, but ${this.text}. Nothing was changed. ${recoveryAdvice(file)}`,
    )
  }
}

/** What to do about a corrupt database. */
export function recoveryAdvice(file: string): string {
  const data = dirname(file)
  return (
    `Restore a backup (oarlock restore BACKUP --data ${data} --force), ` +
    `or keep the objects that can be read (oarlock restore ${file} --data NEW_DIRECTORY --salvage)`
  )
}
