import type { ViewDelta, ViewQuery } from '../../protocol/index.ts'

/** `lastMs`: when the last message arrived, by the clock of the browser; undefined before the first. `offsetMs`: the server's clock minus it. */
export type Connection = { readonly state: 'connecting' | 'live' | 'reconnecting'; readonly lastMs?: number; readonly offsetMs: number }

export type ViewQueries = Readonly<Record<string, ViewQuery>>

/** From a tab to the one that has the stream. */
export type TabMessage = { readonly type: 'want'; readonly tab: string; readonly views: ViewQueries }

/** From the tab that has the stream to all others. */
export type LeaderMessage =
  /** A new one, or one that does not know who is there: tabs send what they want. */
  | { readonly type: 'leader' }
  | { readonly type: 'delta'; readonly delta: ViewDelta; readonly tab?: string }
  | { readonly type: 'connection'; readonly connection: Connection }
  | { readonly type: 'signed-out'; readonly reason: string }
