/** Which resource each Stack belongs to, so that a change of a Run, which names its Stack only, reconciles the resource. */
export class StackKeys {
  readonly #keys = new Map<string, string>()
  readonly #uids = new Map<string, string>()

  add(uid: string, key: string): void {
    this.#keys.set(uid, key)
    this.#uids.set(key, uid)
  }

  of(uid: string): string[] {
    const key = this.#keys.get(uid)
    return key === undefined ? [] : [key]
  }

  /** The resource has no Stack any more. */
  forget(key: string): void {
    const uid = this.#uids.get(key)
    if (uid === undefined) return
    this.#uids.delete(key)
    this.#keys.delete(uid)
  }
}
