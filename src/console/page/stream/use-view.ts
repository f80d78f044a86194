import { createContext } from 'preact'
import { useContext, useEffect, useRef } from 'preact/hooks'
import type { ViewQuery } from '../../protocol/index.ts'
import type { Tab } from './tab.ts'
import type { ViewState } from './view-state.ts'

export const TabContext = createContext<Tab | undefined>(undefined)

/** The view of a query while the component is shown. A query of the same kind changes the view, so that rows that both have are kept. */
export function useView<Facts, Row extends { readonly key: string } = never>(query: ViewQuery): ViewState<Facts, Row> {
  const tab = useContext(TabContext)
  if (!tab) throw new Error('useView needs a TabContext')
  const view = useRef<ViewState<Facts, Row>>(undefined)
  const text = JSON.stringify(query)
  if (view.current && !isSameView(view.current.query, query)) {
    tab.closeView(view.current)
    view.current = undefined
  }
  view.current ??= tab.open<Facts, Row>(query)
  const current = view.current
  useEffect(() => {
    if (JSON.stringify(current.query) !== text) tab.change(current as unknown as ViewState<unknown, never>, JSON.parse(text) as ViewQuery)
  }, [tab, current, text])
  useEffect(() => () => tab.closeView(view.current as { readonly id: string }), [tab])
  return current
}

function isSameView(a: ViewQuery, b: ViewQuery): boolean {
  if (a.kind !== b.kind) return false
  return objectOf(a) === objectOf(b)
}

/** Undefined for a view of many. */
const objectOf = (query: ViewQuery) => ('name' in query ? `${'namespace' in query ? query.namespace : ''}/${query.name}` : undefined)
