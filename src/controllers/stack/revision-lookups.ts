import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Stack } from '../../api/index.ts'

export type RevisionLookup = {
  readonly result: Promise<string>
  /** The order in which lookups begin, from 1. 0: it has not begun, so its result is newer than everything that has happened until now. */
  order: number
}

/**
 * Lookups of revisions. Those of the same repository, ref and credentials are one lookup: that of all Stacks of a project, which share its
 * interval too. They queue for a place; inline sources need no network, so they do not queue behind slow repositories.
 */
export class RevisionLookups {
  readonly #resolve: (stack: Stack) => Promise<string>
  readonly #maxConcurrent: number
  /** The newest of each key. */
  readonly #newest = new Map<string, RevisionLookup>()
  readonly #queue: (() => void)[] = []
  #active = 0
  #begun = 0

  constructor(resolve: (stack: Stack) => Promise<string>, maxConcurrent: number) {
    this.#resolve = resolve
    this.#maxConcurrent = maxConcurrent
  }

  /** Returns the lookup in progress, or a new one. With `mustBegin` only one that has not begun yet: the user has pushed just now. */
  start(stack: Stack, { mustBegin }: { mustBegin: boolean }): RevisionLookup {
    const key = lookupKey(stack)
    const newest = key === undefined ? undefined : this.#newest.get(key)
    if (newest && (newest.order === 0 || !mustBegin)) return newest
    const result = Promise.withResolvers<string>()
    const lookup: RevisionLookup = { result: result.promise, order: 0 }
    if (key !== undefined) this.#newest.set(key, lookup)
    this.#perform(stack, lookup)
      .finally(() => {
        if (key !== undefined && this.#newest.get(key) === lookup) this.#newest.delete(key)
      })
      .then(result.resolve, result.reject)
    return lookup
  }

  async #perform(stack: Stack, lookup: RevisionLookup): Promise<string> {
    if (stack.spec.source.inline) {
      lookup.order = ++this.#begun
      return await this.#resolve(stack)
    }
    // Stacks that are created or due together join it before it begins.
    await nextTurn()
    if (this.#active >= this.#maxConcurrent) await new Promise<void>(start => this.#queue.push(start))
    this.#active++
    lookup.order = ++this.#begun
    try {
      return await this.#resolve(stack)
    } finally {
      this.#active--
      this.#queue.shift()?.()
    }
  }
}

/** Sources with the same key have the same revision, and the same rights to read it. Undefined for those that share no lookup. */
export function lookupKey({ metadata, spec }: Stack): string | undefined {
  const { git } = spec.source
  return git && JSON.stringify([metadata.namespace, git.secretRef?.name, git.url, git.branch, git.tag, git.commit])
}
