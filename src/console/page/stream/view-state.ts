import { batch, type Signal, signal } from '@preact/signals'
import type { ViewDelta } from '../../protocol/index.ts'

type Row = { readonly key: string }

/**
 * What the page has of one view. Each row is a signal: a change of one row renders one row.
 * Invariant: `rows` has exactly the keys of `order`.
 */
export class ViewState {
  readonly #facts = signal<unknown>(undefined)
  readonly #order = signal<readonly string[]>([])
  readonly #error = signal<ViewDelta['error']>(undefined)
  readonly #isLoaded = signal(false)
  readonly #rows = new Map<string, Signal<Row>>()

  /** Undefined until the first delta. */
  get facts(): unknown {
    return this.#facts.value
  }

  /** Keys of the rows. */
  get order(): readonly string[] {
    return this.#order.value
  }

  get error(): ViewDelta['error'] {
    return this.#error.value
  }

  get isLoaded(): boolean {
    return this.#isLoaded.value
  }

  row(key: string): Signal<Row> | undefined {
    return this.#rows.get(key)
  }

  /** Changes that arrive before the first whole delta belong to an earlier subscription of the same view, and are ignored. */
  apply({ whole, order, rows = [], facts, error }: ViewDelta): void {
    if (!whole && !this.#isLoaded.peek()) return
    batch(() => {
      for (const row of rows) {
        const known = this.#rows.get(row.key)
        if (known) known.value = row
        else this.#rows.set(row.key, signal(row))
      }
      const isChanged = order !== undefined || whole
      if (isChanged) {
        const keys = (order ?? []).filter(key => this.#rows.has(key))
        const kept = new Set(keys)
        for (const key of this.#rows.keys()) if (!kept.has(key)) this.#rows.delete(key)
        this.#order.value = keys
      }
      if (facts !== undefined || whole) this.#facts.value = facts
      this.#error.value = error
      this.#isLoaded.value = true
    })
  }

  /** A delta that gives a tab all of it; undefined before the first one has arrived. */
  snapshot(id: string): ViewDelta | undefined {
    if (!this.#isLoaded.peek()) return undefined
    const order = this.#order.peek()
    const rows = order.map(key => this.#rows.get(key)!.peek())
    return { type: 'view', id, whole: true, order, rows, facts: this.#facts.peek(), error: this.#error.peek() }
  }
}
