import { useLayoutEffect, useRef } from 'preact/hooks'
import type { TableKind } from '../../protocol/index.ts'
import { tabStream } from './tab.ts'
import type { View } from './use-view.ts'
import { viewIdOf } from './view-id.ts'

/** Rows of one view of a table. Scrolling adds and removes views of so many rows, and what is visible is not sent again. */
export const chunkRows = 100

export type ChunkQuery = { readonly kind: TableKind; readonly filter?: string; readonly sort?: string }

/** The parts of a table from row `first` to before row `end`, by number: part `n` begins at row `n * chunkRows`. There is always one. */
export function useChunks<K extends TableKind>(query: ChunkQuery & { readonly kind: K }, first: number, end: number): Map<number, View<K>> {
  const numbers: number[] = []
  for (let n = Math.floor(first / chunkRows); n * chunkRows < Math.max(end, first + 1); n++) numbers.push(n)
  const queries = numbers.map(n => ({ ...query, offset: n * chunkRows, limit: chunkRows }))
  const ended = useRef(new Map<string, () => void>())
  // The new parts are shown before the old ones end, so that those that stay are not sent again.
  useLayoutEffect(() => {
    const wanted = new Map(queries.map(one => [viewIdOf(one), one]))
    for (const [id, one] of wanted) if (!ended.current.has(id)) ended.current.set(id, tabStream().show(one))
    for (const [id, end] of ended.current)
      if (!wanted.has(id)) {
        ended.current.delete(id)
        end()
      }
  }, [queries.map(viewIdOf).join()])
  useLayoutEffect(
    () => () => {
      for (const end of ended.current.values()) end()
    },
    [],
  )
  return new Map(queries.map((one, i) => [numbers[i]!, tabStream().state(one) as unknown as View<K>]))
}
