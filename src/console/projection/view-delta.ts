import type { ViewDelta } from '../protocol/index.ts'

type Row = { readonly key: string }

/** What a view shows now. */
export type ViewContent = {
  readonly rows?: readonly Row[]
  readonly facts?: unknown
  readonly error?: ViewDelta['error']
}

/** What the page has of a view, as text, by which changes are found. */
export class SentView {
  facts: string | undefined
  order: string | undefined
  rows = new Map<string, string>()
  error: string | undefined
  isEmpty = true
}

/**
 * What must be sent so that the page has `content`; undefined if it has it already. Changes `sent`. Rows that are no longer in the order are
 * forgotten here and on the page.
 */
export function viewDelta(id: string, sent: SentView, content: ViewContent): ViewDelta | undefined {
  const whole = sent.isEmpty || (sent.error !== undefined) !== (content.error !== undefined)
  if (whole) {
    sent.facts = undefined
    sent.order = undefined
    sent.rows = new Map()
  }
  const error = content.error && JSON.stringify(content.error)
  const facts = content.facts === undefined ? undefined : JSON.stringify(content.facts)
  const keys = content.rows?.map(({ key }) => key)
  const order = keys && JSON.stringify(keys)
  const rows = new Map<string, string>()
  const changed: Row[] = []
  for (const row of content.rows ?? []) {
    const text = JSON.stringify(row)
    rows.set(row.key, text)
    if (sent.rows.get(row.key) !== text) changed.push(row)
  }
  const isSame = !whole && error === sent.error && facts === sent.facts && order === sent.order && changed.length === 0
  const delta: ViewDelta = {
    type: 'view',
    id,
    whole,
    ...(keys && order !== sent.order && { order: keys }),
    ...(changed.length > 0 && { rows: changed }),
    ...(facts !== undefined && facts !== sent.facts && { facts: content.facts }),
    ...(content.error && { error: content.error }),
  }
  Object.assign(sent, { facts, order, rows, error, isEmpty: false })
  return isSame ? undefined : delta
}
