import type { Informer } from '../../kubernetes/controller/index.ts'
import { type KubeObject, objectKey } from '../../kubernetes/object/index.ts'

/** Rows by key, each computed when its object changes. {@link version} rises with every change. */
export class RowTable<Row extends { readonly key: string }> {
  readonly #rows = new Map<string, Row>()
  #version = 0

  get version(): number {
    return this.#version
  }

  get size(): number {
    return this.#rows.size
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key)
  }

  values(): IterableIterator<Row> {
    return this.#rows.values()
  }

  set(row: Row): void {
    this.#rows.set(row.key, row)
    this.#version++
  }

  delete(key: string): void {
    if (this.#rows.delete(key)) this.#version++
  }

  /** Keeps a row for each object of the cache. @param rowOf undefined: the object has none. */
  follow<Body>(informer: Pick<Informer<Body>, 'onChange'>, rowOf: (object: KubeObject<Body>) => Row | undefined): void {
    informer.onChange({
      changed: ({ type, object }) => {
        const row = type === 'deleted' ? undefined : rowOf(object)
        if (row) this.set(row)
        else this.delete(objectKey(object))
      },
    })
  }
}
