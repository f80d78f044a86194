import type { Client } from '../../../src/kubernetes/client/index.ts'

export type WatchedEvent = {
  type: string
  object: { metadata: { name: string; resourceVersion: string; annotations?: Record<string, string> } }
}

/** What a watch has sent, in order. */
export class Watched {
  readonly events: WatchedEvent[] = []
  readonly done: Promise<void>
  isEnded = false
  readonly #abort = new AbortController()

  constructor(client: Client, path: string) {
    this.done = this.#run(client, path)
  }

  /** Of events that are no bookmarks. */
  get versions(): number[] {
    return this.events.filter(({ type }) => type !== 'BOOKMARK').map(({ object }) => Number(object.metadata.resourceVersion))
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await this.done
  }

  async #run(client: Client, path: string): Promise<void> {
    try {
      const { body } = await client.stream({ method: 'GET', path, signal: this.#abort.signal, idleTimeoutMs: 0 })
      let rest = ''
      for await (const chunk of body) {
        rest += Buffer.from(chunk).toString()
        const lines = rest.split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) this.events.push(JSON.parse(line) as WatchedEvent)
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error
    } finally {
      this.isEnded = true
    }
  }
}
