import type { KubeObject } from '../object/index.ts'
import { coerceError, type Log } from '../util/log.ts'
import type { Change } from './predicates.ts'

/**
 * Told after the cache changed, in one of two forms. `isInitial` is true for what was there when the cache was filled or the
 * handler came. Objects are frozen.
 */
export type ChangeHandler<Body> =
  | {
      /** All three in one. The cheap form: `old` of an update is read only when it is looked at, which must be before the handler returns. */
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

/** The handlers of one cache. One that throws is logged and stays, and the others are told. */
export class ChangeHandlers<Body> {
  readonly #handlers = new Set<ChangeHandler<Body>>()
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log
  }

  get size(): number {
    return this.#handlers.size
  }

  /** Returns how to remove it. */
  add(handler: ChangeHandler<Body>): () => void {
    this.#handlers.add(handler)
    return () => void this.#handlers.delete(handler)
  }

  added(object: KubeObject<Body>, isInitial: boolean): void {
    for (const handler of this.#handlers) this.addedTo(handler, object, isInitial)
  }

  addedTo(handler: ChangeHandler<Body>, object: KubeObject<Body>, isInitial: boolean): void {
    this.#guard(() => {
      if (handler.changed) handler.changed({ type: 'added', object, isInitial })
      else handler.added?.(object, isInitial)
    })
  }

  updated(old: () => KubeObject<Body>, object: KubeObject<Body>): void {
    for (const handler of this.#handlers) {
      this.#guard(() => {
        if (handler.changed) handler.changed(new Update(object, old))
        else handler.updated?.(old(), object)
      })
    }
  }

  deleted(object: KubeObject<Body>): void {
    for (const handler of this.#handlers) {
      this.#guard(() => {
        if (handler.changed) handler.changed({ type: 'deleted', object })
        else handler.deleted?.(object)
      })
    }
  }

  #guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#log.error({ err: coerceError(error) }, 'change handler threw, the others go on')
    }
  }
}

/** An update whose `old` is read when somebody looks at it. */
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
