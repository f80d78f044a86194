import type { TransportStreamResponse } from '../../kubernetes/client/transport.ts'
import { kindClassOf } from '../kinds/index.ts'
import { type ClientResponse, type GatewayUser, gatewayUser, Slots } from '../request/index.ts'
import { ForwardedWatches } from './forwarded-watches.ts'
import { RightsCheck } from './rights-check.ts'
import { serveWatch } from './serve-watch.ts'
import { SharedWatches, type SharedWatchesOptions } from './shared-watches.ts'
import { planWatch, type WatchPart, type WatchPlan } from './watch-plan.ts'

export type ClientWatchesOptions = {
  /** Of events that wait for a partition, for each watch. Default 16 MiB. */
  readonly maxBufferedBytes?: number | undefined
  readonly shared?: Pick<SharedWatchesOptions, 'ring' | 'maxWatches' | 'checkEveryMs' | 'lingerMs'> | undefined
  reconnected?(partition: string): void
  passed?(events: number): void
  slowClient?(): void
  readonly log: (message: string, error?: unknown) => void
}

/** A watch that is served here. */
export type ClientWatchRequest = {
  readonly parts: readonly WatchPart[]
  readonly path: string
  readonly query: URLSearchParams
  readonly table: string
  readonly isNamespaced: boolean
  readonly user: GatewayUser
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  isCurrent(): boolean
  /** `GatewayMap.relistFrom` */
  readonly relistFrom: number
  isCurrentAt: WatchPlan['isCurrentAt']
  areAllParts(): Promise<void>
  reauthenticate(): Promise<boolean>
  /** Sends a response of a partition that is no watch. */
  sendAnswer(answer: TransportStreamResponse): Promise<void>
}

/** Where the objects of a kind are. */
export const classOf = (table: string, isNamespaced: boolean): string => (isNamespaced ? 'namespaced' : kindClassOf(table))

type UpstreamWatch = { readonly partition: string; readonly kindClass: string }

const defaultBufferBytes = 16 * 1024 * 1024
/** Of all watches that clients do not read, and of all that wait for a partition; and of one however many there are. */
const maxAllBytes = 256 * 1024 * 1024
const minBytes = 64 * 1024
/** Each has a connection to every partition meanwhile. A client that reads slowly holds no other. */
const catchUpsAtATime = 64
const catchUpHeldMs = 1_000

/** The open watches of a gateway's clients. */
export class ClientWatches {
  readonly #options: ClientWatchesOptions
  readonly #maxBufferedBytes: number
  readonly #shared: SharedWatches
  readonly #rights = new RightsCheck(gatewayUser)
  readonly #catchUps = new Slots(catchUpsAtATime, catchUpHeldMs)
  readonly #alone = new Set<WatchPlan>()
  /** Those that go to one partition as they are. */
  readonly forwarded = new ForwardedWatches()
  #open = 0

  constructor(options: ClientWatchesOptions) {
    const { maxBufferedBytes = defaultBufferBytes, shared, reconnected, passed, log } = options
    this.#options = options
    this.#maxBufferedBytes = maxBufferedBytes
    this.#shared = new SharedWatches({
      ...{ ...shared, user: gatewayUser, maxBufferedBytes: this.#maxWaitingBytes, log },
      ...(reconnected && { reconnected }),
      ...(passed && { passed }),
    })
  }

  get sharedCount(): number {
    return this.#shared.size
  }

  get ringBytes(): number {
    let bytes = 0
    for (const { watch } of this.#shared) bytes += watch.bytes
    return bytes
  }

  clientCounts(): { readonly shared: number; readonly alone: number; readonly forwarded: number } {
    let shared = 0
    for (const { watch } of this.#shared) shared += watch.clients
    return { shared, alone: this.#alone.size, forwarded: this.forwarded.size }
  }

  readonly #maxWaitingBytes = () => this.#shareOf(this.sharedCount + this.#alone.size)

  #shareOf(watches: number): number {
    return Math.min(this.#maxBufferedBytes, Math.max(minBytes, maxAllBytes / watches))
  }

  /** The watches that are open in partitions for them. */
  *upstream(): Generator<UpstreamWatch> {
    for (const { parts, table, isNamespaced } of [...[...this.#shared].map(({ plan }) => plan), ...this.#alone])
      for (const { partition } of parts) yield { partition, kindClass: classOf(table, isNamespaced) }
    for (const { partition, kindClass, count } of this.forwarded)
      for (let number = 0; number < count; number++) yield { partition, kindClass }
  }

  /**
   * Serves a watch until it ends.
   * @throws {StatusError} if a partition does not answer, and nothing was sent.
   */
  async serve(response: ClientResponse, request: ClientWatchRequest): Promise<void> {
    const plan = planWatch(request)
    this.#open++
    try {
      await serveWatch(response, {
        ...this.#options,
        ...request,
        ...{ plan, shared: this.#shared, rights: this.#rights, catchUps: this.#catchUps, maxBufferedBytes: this.#maxWaitingBytes },
        maxUnsentBytes: () => this.#shareOf(this.#open),
        openedAlone: () => {
          this.#alone.add(plan)
          return () => this.#alone.delete(plan)
        },
      })
    } finally {
      this.#open--
    }
  }

  /** Ends the watches that clients share, and with them their clients. */
  close(): void {
    this.#shared.close()
  }
}
