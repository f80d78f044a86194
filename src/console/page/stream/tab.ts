import { signal } from '@preact/signals'
import type { ViewQuery } from '../../protocol/index.ts'
import { loadSession } from '../session.ts'
import { StreamLeader } from './leader.ts'
import type { Connection, LeaderMessage, TabMessage, ViewQueries } from './messages.ts'
import { viewIdOf } from './view-id.ts'
import { ViewState } from './view-state.ts'

/** A tab that is hidden for longer wants no views. */
const hiddenMs = 10_000
const lockName = 'oarlock.console.stream'
const tabLockName = (tab: string) => `oarlock.console.tab.${tab}`

export const connection = signal<Connection>({ state: 'connecting', offsetMs: 0 })

type Shown = { readonly query: ViewQuery; readonly state: ViewState; count: number }

/**
 * The stream as a tab sees it. The tab that holds the lock {@link lockName} has the connection; when it closes the browser gives the lock to another.
 * Every tab holds a lock of its own too: the leader notices by it that a tab has closed or crashed.
 * Locks need HTTPS or localhost. Without them every tab has a connection of its own.
 */
class TabStream {
  readonly #tab = crypto.getRandomValues(new Uint32Array(2)).join('-')
  readonly #shown = new Map<string, Shown>()
  readonly #channel = new BroadcastChannel('oarlock.console')
  readonly #end = new AbortController()
  readonly #watched = new Set<string>()
  #leader: StreamLeader | undefined
  #hiddenTimer: ReturnType<typeof setTimeout> | undefined
  #isHidden = false
  /** The leader takes a tab whose lock is free for closed: a tab sends nothing before it holds its lock. */
  #isLocked = false
  #isSending = false

  constructor() {
    const { signal: ended } = this.#end
    this.#channel.onmessage = ({ data }: MessageEvent<LeaderMessage | TabMessage>) => {
      if (data.type === 'want') this.#fromTab(data)
      else this.#fromLeader(data)
    }
    document.addEventListener('visibilitychange', () => this.#onVisibility(), { signal: ended })
    addEventListener('online', () => this.#leader?.wake(), { signal: ended })
    addEventListener('pagehide', () => this.#send({}), { signal: ended })
    addEventListener('pageshow', event => event.persisted && this.#want(), { signal: ended })
    if (!('locks' in navigator)) {
      this.#lead()
      return
    }
    const untilEnd = () => new Promise<void>(resolve => ended.addEventListener('abort', () => resolve()))
    const ignoreAbort = () => undefined
    navigator.locks
      .request(tabLockName(this.#tab), { signal: ended }, async () => {
        this.#isLocked = true
        this.#want()
        await untilEnd()
      })
      .catch(ignoreAbort)
    navigator.locks
      .request(lockName, { signal: ended }, async () => {
        this.#lead()
        await untilEnd()
      })
      .catch(ignoreAbort)
  }

  /** The state of a view; it is empty until the view is shown and the server has sent it. */
  state(query: ViewQuery): ViewState {
    const id = viewIdOf(query)
    let shown = this.#shown.get(id)
    if (!shown) {
      shown = { query, state: new ViewState(), count: 0 }
      this.#shown.set(id, shown)
    }
    return shown.state
  }

  /** Returns a function that ends it. A view that is shown twice ends with the second. */
  show(query: ViewQuery): () => void {
    this.state(query)
    const id = viewIdOf(query)
    const shown = this.#shown.get(id)!
    shown.count++
    this.#want()
    return () => {
      shown.count--
      // What is shown again in the same moment stays.
      queueMicrotask(() => {
        if (shown.count > 0 || this.#shown.get(id) !== shown) return
        this.#shown.delete(id)
        this.#want()
      })
    }
  }

  close(): void {
    this.#send({})
    this.#leader?.close()
    this.#end.abort()
    clearTimeout(this.#hiddenTimer)
    this.#channel.close()
    connection.value = { state: 'connecting', offsetMs: 0 }
  }

  #lead(): void {
    this.#leader = new StreamLeader(message => {
      if (message.type !== 'delta' || message.tab !== this.#tab) this.#channel.postMessage(message)
      this.#fromLeader(message)
    })
    this.#channel.postMessage({ type: 'leader' } satisfies LeaderMessage)
    this.#want()
  }

  #fromTab({ tab, views }: TabMessage): void {
    const leader = this.#leader
    if (!leader || !('locks' in navigator)) return
    if (!this.#watched.has(tab)) {
      this.#watched.add(tab)
      // Granted when the tab is gone.
      navigator.locks
        .request(tabLockName(tab), { signal: this.#end.signal }, () => {
          this.#watched.delete(tab)
          leader.leave(tab)
        })
        .catch(() => undefined)
      leader.reportConnection()
    }
    leader.want(tab, views)
  }

  #fromLeader(message: LeaderMessage): void {
    if (message.type === 'leader') this.#want()
    else if (message.type === 'connection') connection.value = message.connection
    else if (message.type === 'signed-out') void loadSession(`You were signed out: ${message.reason}.`)
    else if (message.tab === undefined || message.tab === this.#tab) {
      connection.value = { ...connection.peek(), lastMs: Date.now() }
      this.#shown.get(message.delta.id)?.state.apply(message.delta)
    }
  }

  #onVisibility(): void {
    clearTimeout(this.#hiddenTimer)
    if (document.hidden) {
      this.#hiddenTimer = setTimeout(() => {
        this.#isHidden = true
        this.#want()
      }, hiddenMs)
      return
    }
    this.#isHidden = false
    this.#leader?.wake()
    this.#want()
  }

  #want(): void {
    if (this.#isSending || this.#end.signal.aborted) return
    this.#isSending = true
    queueMicrotask(() => {
      this.#isSending = false
      const wanted = this.#isHidden ? [] : [...this.#shown].filter(([, { count }]) => count > 0)
      this.#send(Object.fromEntries(wanted.map(([id, { query }]) => [id, query])))
    })
  }

  #send(views: ViewQueries): void {
    if (this.#end.signal.aborted) return
    if (this.#leader) this.#leader.want(this.#tab, views)
    else if (this.#isLocked) this.#channel.postMessage({ type: 'want', tab: this.#tab, views } satisfies TabMessage)
  }
}

let stream: TabStream | undefined

/** The stream of this tab, opened when it is needed first. */
export const tabStream = (): TabStream => {
  stream ??= new TabStream()
  return stream
}

export function closeTabStream(): void {
  stream?.close()
  stream = undefined
}
