/**
 * The Stacks of which the file may have what matters to a Run that requires no state: the lock of a user or a tool, or a state of Pulumi, whose journal may
 * not be understood. All those that have it, and some that had it. It saves asking the store's thread before each Run of the others.
 * It belongs to one thread, which alone has the file open, and sees every call that writes before that thread does. At most one entry per Stack.
 */
export class StacksWithFacts {
  /** By UID: how many calls may have added something. */
  readonly #calls: Map<string, number>

  /** @param uids the Stacks of the file. */
  constructor(uids: readonly string[]) {
    this.#calls = new Map(uids.map(uid => [uid, 0]))
  }

  mayHave(stackUid: string): boolean {
    return this.#calls.has(stackUid)
  }

  /** Call it before a call that may add something is sent. */
  add(stackUid: string): void {
    this.#calls.set(stackUid, (this.#calls.get(stackUid) ?? 0) + 1)
  }

  /** Call it before the facts are read, and its result with what was read: no entry is kept for a Stack that has nothing any more. */
  beforeRead(stackUid: string): (hasFacts: boolean) => void {
    const calls = this.#calls.get(stackUid)
    return hasFacts => {
      // What was sent meanwhile may have added something.
      if (!hasFacts && this.#calls.get(stackUid) === calls) this.#calls.delete(stackUid)
    }
  }

  delete(stackUid: string): void {
    this.#calls.delete(stackUid)
  }
}
