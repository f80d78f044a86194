import type { KubeObject } from '../object/index.ts'
import { coerceError, type Log } from '../util/log.ts'
import type { Change } from './predicates.ts'

/**
 * Called after the cache changed, in one of two forms. `isInitial` is true for objects that were present when the cache was filled or
 * the handler was added. Objects are frozen. In a sharded cache an object is also added and deleted when its bucket comes and goes: a deleted
 * one may still exist.
 */
export type ChangeHandler<Body> =
  | {
      /** All changes in one method. The cheap form: `old` of an update is unpacked only on access, which must happen before the handler returns. */
      changed(change: Change<Body>): void
      added?: undefined
      updated?: undefined
      deleted?: undefined
    }
  | {
      changed?: undefined
      added?(object: KubeObject<Body>, isInitial: boolean): void
      updated?(old: KubeObject<Body>, object: KubeObject<Body>): void
      deleted?(object: KubeObject<Body>): void
    }

/** The handlers of one cache. One that throws is logged and kept, and the others are still called. */
export class ChangeHandlers<Body> {
  readonly #handlers = new Set<ChangeHandler<Body>>()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  get size(): number {
    return this.#handlers.size
  }

  /** Returns a function that removes it. */
  add(handler: ChangeHandler<Body>): () => void {
    this.#handlers.add(handler)
    return () => void this.#handlers.delete(handler)
  }

  added(object: KubeObject<Body>, isInitial: boolean): void {
    for (const handler of this.#handlers) this.addedTo(handler, object, isInitial)
  }

  addedTo(handler: ChangeHandler<Body>, object: KubeObject<Body>, isInitial: boolean): void {
    this.#call(() => {
      if (handler.changed) handler.changed({ type: 'added', object, isInitial })
      else handler.added?.(object, isInitial)
    })
  }

  updated(old: () => KubeObject<Body>, object: KubeObject<Body>): void {
    for (const handler of this.#handlers) {
      this.#call(() => {
        if (handler.changed) handler.changed(new Update(object, old))
        else handler.updated?.(old(), object)
      })
    }
  }

  deleted(object: KubeObject<Body>): void {
    for (const handler of this.#handlers) {
      this.#call(() => {
        if (handler.changed) handler.changed({ type: 'deleted', object })
        else handler.deleted?.(object)
      })
    }
  }

  #call(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#log.error({ err: coerceError(error) }, 'change handler threw, continuing with the others')
    }
  }
}

/** An update whose `old` is unpacked on access. */
class Update<Body> {
  readonly type = 'updated'
  readonly object: KubeObject<Body>
  readonly #old: () => KubeObject<Body>

  constructor(object: KubeObject<Body>, old: () => KubeObject<Body>) {
    this.object = object
    this.#old = old
  }

  get old(): KubeObject<Body> {
    return this.#old()
  }
}
