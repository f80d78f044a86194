import type { Signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import type { HistoryFacts, OverviewFacts, RowOf, RunFacts, StackFacts, TableFacts, TableKind, ViewQuery } from '../../protocol/index.ts'
import { tabStream } from './tab.ts'
import { viewIdOf } from './view-id.ts'
import type { ViewState } from './view-state.ts'

type FactsOf = {
  readonly [K in TableKind]: TableFacts
} & { readonly overview: OverviewFacts; readonly stack: StackFacts; readonly run: RunFacts; readonly history: HistoryFacts }

/** A {@link ViewState} with the types of its kind. */
export type View<K extends ViewQuery['kind']> = Omit<ViewState, 'facts' | 'row'> & {
  readonly facts: FactsOf[K] | undefined
  row(key: string): K extends keyof RowOf ? Signal<RowOf[K]> | undefined : undefined
}

/** Shows a view as long as the component is mounted. The facts of a view are undefined until they arrive. */
export function useView<K extends ViewQuery['kind']>(query: ViewQuery & { readonly kind: K }): View<K> {
  const state = tabStream().state(query)
  useLayoutEffect(() => tabStream().show(query), [viewIdOf(query)])
  return state as unknown as View<K>
}
