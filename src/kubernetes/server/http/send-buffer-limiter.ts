/** A connection, or one stream of an HTTP/2 connection. */
export type Sender = {
  /** Bytes that were not sent yet. */
  readonly writableLength: number
  destroy(): unknown
}

export type SendBufferLimits = {
  /** Unsent bytes of all clients; beyond, the clients with the largest buffers are disconnected. Default 256 MiB. */
  totalBytes: number
  /** A client that reads nothing for this many sweeps is disconnected. Default 60. */
  stalledSweeps: number
}

const defaults: SendBufferLimits = { totalBytes: 256 * 1024 * 1024, stalledSweeps: 60 }

/**
 * Bounds the unsent bytes of all clients (invariant 10). Each client may have a list or a watch in progress that is buffered in
 * memory; a thousand clients that do not read would take a gigabyte. They are disconnected, the largest buffer first.
 */
export class SendBufferLimiter {
  readonly #limits: SendBufferLimits
  readonly #senders = new Map<Sender, { length: number; sweeps: number }>()

  constructor(limits: Partial<SendBufferLimits> = {}) {
    this.#limits = { ...defaults, ...limits }
  }

  add(outlet: Sender): void {
    this.#senders.set(outlet, { length: 0, sweeps: 0 })
  }

  delete(outlet: Sender): void {
    this.#senders.delete(outlet)
  }

  /** Checks all senders; called once a second. */
  sweep(): void {
    const { totalBytes, stalledSweeps } = this.#limits
    let total = 0
    for (const [outlet, seen] of this.#senders) {
      const length = outlet.writableLength
      total += length
      // A buffer that only grows is not read either; one that is read shrinks from time to time.
      seen.sweeps = length > 0 && length >= seen.length ? seen.sweeps + 1 : 0
      seen.length = length
      if (seen.sweeps > stalledSweeps) this.#disconnect(outlet)
    }
    if (total > totalBytes) this.#disconnectLongest(total - totalBytes / 2)
  }

  #disconnectLongest(excess: number): void {
    let remaining = excess
    for (const [outlet, { length }] of [...this.#senders].sort(([, a], [, b]) => b.length - a.length)) {
      if (remaining <= 0) return
      remaining -= length
      this.#disconnect(outlet)
    }
  }

  #disconnect(outlet: Sender): void {
    this.#senders.delete(outlet)
    outlet.destroy()
  }
}
