import type { DependencyInput, DependencyInputKind } from '../dependency-input.ts'
import type { SourceFiles } from '../source-files.ts'

/** Collects files and directories of a source as inputs; those that do not exist are none. */
export class InputList {
  readonly #source: SourceFiles
  readonly #inputs = new Map<string, DependencyInput>()

  constructor(source: SourceFiles) {
    this.#source = source
  }

  get list(): DependencyInput[] {
    return [...this.#inputs.values()]
  }

  async add(kind: DependencyInputKind, path: string): Promise<void> {
    const name = path === '' ? '.' : path
    const key = `${kind} ${name}`
    if (this.#inputs.has(key)) return
    const value = await this.#source.digest(path)
    if (value !== undefined) this.#inputs.set(key, { kind, name, value })
  }
}
