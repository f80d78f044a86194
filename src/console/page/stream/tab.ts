import { signal } from '@preact/signals'
import type { StreamMessage, ViewQuery } from '../../protocol/index.ts'
import { signedOut } from '../session.ts'
import { stored } from '../stored.ts'
import { type Connection, type Position, StreamConnection } from './connection.ts'
import { ViewState } from './view-state.ts'

/** Between the tabs of a browser. The leader is the tab with the connection. */
type TabMessage =
  /** What the tab shows now. */
  | { readonly type: 'views'; readonly tab: string; readonly views: Readonly<Record<string, ViewQuery>> }
  /** Another tab leads now: it must learn what the others show. */
  | { readonly type: 'leading' }
  | { readonly type: 'stream'; readonly message: StreamMessage; readonly position: Position }
  | { readonly type: 'connection'; readonly connection: Connection }
  | { readonly type: 'signed-in' }

/** A page that is loaded again continues the stream with all of its views, so that streams without a page do not add up on the server. */
const lastStream = stored<string>('stream', '', (value): value is string => typeof value === 'string')
const channelName = 'oarlock-console'
const lockOfLeader = 'oarlock-console-stream'
const lockOfTab = (tab: string) => `oarlock-console-tab-${tab}`
/** A tab that has been hidden for so long needs no views. */
const hiddenMs = 30_000
const tabsEveryMs = 10_000

/** Of the stream; undefined before the first message. */
export const connection = signal<Connection | undefined>(undefined)
/** What to add to the clock of this browser to get the server's. */
export const clockOffsetMs = signal(0)

/**
 * This tab of the page. All tabs of a browser share one stream: the tab that holds a Web Lock has the connection, the others name the views that they
 * show and get its messages over a BroadcastChannel. When it closes, another tab gets the lock and continues the stream. Where a browser has no
 * locks (a page without TLS that is not on localhost) each tab has a stream of its own.
 */
export class Tab {
  readonly #name = Array.from(crypto.getRandomValues(new Uint8Array(6)), byte => byte.toString(16).padStart(2, '0')).join('')
  readonly #views = new Map<string, ViewState<unknown>>()
  readonly #channel: BroadcastChannel | undefined
  readonly #closing = new AbortController()
  #nextView = 0
  #position: Position | undefined
  #stream: StreamConnection | undefined
  /** Of all tabs, by tab: known to the leader. */
  readonly #viewsOfTabs = new Map<string, Readonly<Record<string, ViewQuery>>>()
  #isShown = true
  #isSending = false

  constructor() {
    const { signal } = this.#closing
    if (navigator.locks) {
      this.#channel = new BroadcastChannel(channelName)
      this.#channel.onmessage = event => this.#receive(event.data as TabMessage)
      const untilClosed = () => new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      // Held as long as the tab exists: the leader drops the views of tabs without one.
      navigator.locks.request(lockOfTab(this.#name), { signal }, untilClosed).catch(ignoreAbort)
      navigator.locks
        .request(lockOfLeader, { signal }, async () => {
          this.#lead()
          await untilClosed()
        })
        .catch(ignoreAbort)
      this.#post({ type: 'signed-in' })
    } else this.#lead()
    let hiding: ReturnType<typeof setTimeout> | undefined
    const visibility = () => {
      clearTimeout(hiding)
      if (document.visibilityState === 'visible') this.#show(true)
      else hiding = setTimeout(() => this.#show(false), hiddenMs)
    }
    document.addEventListener('visibilitychange', visibility, { signal })
  }

  open<Facts, Row extends { readonly key: string }>(query: ViewQuery): ViewState<Facts, Row> {
    const view = new ViewState<Facts, Row>(`${this.#name}-${this.#nextView++}`, query)
    this.#views.set(view.id, view as unknown as ViewState<unknown>)
    this.#viewsChanged()
    return view
  }

  change(view: ViewState<unknown, never>, query: ViewQuery): void {
    view.query = query
    this.#viewsChanged()
  }

  closeView({ id }: { readonly id: string }): void {
    if (this.#views.delete(id)) this.#viewsChanged()
  }

  close(): void {
    this.#closing.abort()
    this.#stream?.close()
    this.#channel?.close()
    connection.value = undefined
  }

  #lead(): void {
    if (this.#closing.signal.aborted) return
    // Only with a lock: a stream has one connection.
    const previous = this.#channel && !this.#position ? lastStream.value : ''
    this.#stream = new StreamConnection(previous === '' ? this.#position : { stream: previous, last: -1 }, {
      received: (message, position) => {
        this.#post({ type: 'stream', message, position })
        this.#accept(message, position)
      },
      changed: now => {
        connection.value = now
        this.#post({ type: 'connection', connection: now })
      },
    })
    this.#post({ type: 'leading' })
    this.#viewsChanged()
    if (!navigator.locks) return
    const timer = setInterval(() => void this.#dropClosedTabs(), tabsEveryMs)
    this.#closing.signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  async #dropClosedTabs(): Promise<void> {
    const { held = [] } = await navigator.locks.query()
    const open = new Set(held.map(({ name }) => name))
    let isChanged = false
    for (const tab of [...this.#viewsOfTabs.keys()])
      if (tab !== this.#name && !open.has(lockOfTab(tab))) isChanged = this.#viewsOfTabs.delete(tab) || isChanged
    if (isChanged) this.#sendViews()
  }

  #receive(message: TabMessage): void {
    switch (message.type) {
      case 'views':
        if (!this.#stream) return
        this.#viewsOfTabs.set(message.tab, message.views)
        this.#sendViews()
        // A tab that is new knows nothing of the connection.
        if (connection.value) this.#post({ type: 'connection', connection: connection.value })
        return
      case 'leading':
        this.#viewsChanged()
        return
      case 'stream':
        this.#accept(message.message, message.position)
        return
      case 'connection':
        connection.value = message.connection
        return
      case 'signed-in':
        return
    }
  }

  #accept(message: StreamMessage, position: Position): void {
    this.#position = position
    if (message.type === 'hello') {
      clockOffsetMs.value = message.serverMs - Date.now()
      lastStream.value = message.stream
    }
    if (message.type === 'view') this.#views.get(message.id)?.apply(message)
    if (message.type === 'signed-out') signedOut(undefined, message.reason)
  }

  #show(isShown: boolean): void {
    if (this.#isShown === isShown) return
    this.#isShown = isShown
    this.#viewsChanged()
  }

  /** Once for all changes of the same task. */
  #viewsChanged(): void {
    if (this.#isSending) return
    this.#isSending = true
    queueMicrotask(() => {
      this.#isSending = false
      if (this.#closing.signal.aborted) return
      const views = this.#isShown ? Object.fromEntries([...this.#views].map(([id, { query }]) => [id, query])) : {}
      this.#viewsOfTabs.set(this.#name, views)
      if (this.#stream) this.#sendViews()
      else this.#post({ type: 'views', tab: this.#name, views })
    })
  }

  #sendViews(): void {
    this.#stream?.setViews(Object.assign({}, ...this.#viewsOfTabs.values()))
  }

  #post(message: TabMessage): void {
    this.#channel?.postMessage(message)
  }
}

function ignoreAbort(error: unknown): void {
  if ((error as Error).name !== 'AbortError') throw error
}

/** Calls `signedIn` when a user signs in in another tab. Returns the function that ends it. */
export function watchSignIn(signedIn: () => void): () => void {
  const channel = new BroadcastChannel(channelName)
  channel.onmessage = event => {
    if ((event.data as TabMessage).type === 'signed-in') signedIn()
  }
  return () => channel.close()
}
