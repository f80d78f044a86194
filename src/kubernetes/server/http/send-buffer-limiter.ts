/** Something that sends: a connection, or one stream of an HTTP/2 connection. */
export type Sender = {
  /** Bytes that its client has not taken yet. */
  readonly writableLength: number
  destroy(): unknown
}

export type SendBufferLimits = {
  /** Bytes that may wait for all clients together; beyond, the longest backlogs are cut off. Default 256 MiB. */
  totalBytes: number
  /** A client that takes nothing at all for so many sweeps is cut off. Default 60. */
  stalledSweeps: number
}

const defaults: SendBufferLimits = { totalBytes: 256 * 1024 * 1024, stalledSweeps: 60 }

/**
 * What clients have been sent and do not take (invariant 10). Each of them may have a list or a watch under way that waits in
 * memory: a thousand that ask and do not read would be a gigabyte, so they are cut off, the longest backlog first.
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

  /** Looks at all of them: once a second. */
  sweep(): void {
    const { totalBytes, stalledSweeps } = this.#limits
    let total = 0
    for (const [outlet, seen] of this.#senders) {
      const length = outlet.writableLength
      total += length
      // What goes on growing is not taken either; what is taken gets shorter now and then.
      seen.sweeps = length > 0 && length >= seen.length ? seen.sweeps + 1 : 0
      seen.length = length
      if (seen.sweeps > stalledSweeps) this.#disconnect(outlet)
    }
    if (total > totalBytes) this.#disconnectLongest(total - totalBytes / 2)
  }

  #disconnectLongest(excess: number): void {
    let left = excess
    for (const [outlet, { length }] of [...this.#senders].sort(([, a], [, b]) => b.length - a.length)) {
      if (left <= 0) return
      left -= length
      this.#disconnect(outlet)
    }
  }

  #disconnect(outlet: Sender): void {
    this.#senders.delete(outlet)
    outlet.destroy()
  }
}
