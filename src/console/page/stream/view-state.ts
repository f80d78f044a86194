import { batch, type Signal, signal } from '@preact/signals'
import type { ViewDelta, ViewQuery } from '../../protocol/index.ts'

type Keyed = { readonly key: string }

/**
 * What the page has of a view. A row is a signal of its own, so that a change of one renders one. Rows that are no longer in the order are
 * forgotten, as the server forgets that it has sent them.
 */
export class ViewState<Facts, Row extends Keyed = Keyed> {
  readonly id: string
  query: ViewQuery
  readonly facts = signal<Facts | undefined>(undefined)
  readonly error = signal<ViewDelta['error']>(undefined)
  readonly order = signal<readonly string[]>([])
  readonly #rows = new Map<string, Signal<Row>>()

  constructor(id: string, query: ViewQuery) {
    this.id = id
    this.query = query
  }

  row(key: string): Signal<Row> | undefined {
    return this.#rows.get(key)
  }

  apply({ whole, order, rows, facts, error }: ViewDelta): void {
    batch(() => {
      if (whole) {
        const kept = new Set(rows?.map(({ key }) => key))
        for (const key of this.#rows.keys()) if (!kept.has(key)) this.#rows.delete(key)
        if (!order) this.order.value = []
        this.error.value = undefined
        if (facts === undefined) this.facts.value = undefined
      }
      for (const row of (rows ?? []) as readonly Row[]) {
        const known = this.#rows.get(row.key)
        if (known) known.value = row
        else this.#rows.set(row.key, signal(row))
      }
      if (order) {
        const kept = new Set(order)
        for (const key of this.#rows.keys()) if (!kept.has(key)) this.#rows.delete(key)
        this.order.value = order
      }
      if (facts !== undefined) this.facts.value = facts as Facts
      if (error) this.error.value = error
    })
  }
}
