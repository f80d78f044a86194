import { StatusError } from '../../object/index.ts'

export type FairnessLimits = {
  /** Concurrent requests of all users; further ones wait. Default 2,000. */
  inFlight: number
  /** Concurrent requests of one flow, which are also at most a third of those that are free: {@link freeShare}. Default 500. */
  inFlightPerFlow: number
  /** Body bytes of the concurrent requests of one flow; one request may always start. Default 32 MiB. */
  bodyBytesPerFlow: number
  /** Waiting requests of one flow; the next one gets 429. Default 2,000. */
  waitingPerFlow: number
  /** Requests of one flow that start in one iteration (tick) of the event loop while other flows are active. Default 32. */
  startsPerTick: number
  /** The same while no other flow is active. Default 256. */
  startsPerTickAlone: number
  /** Responses to reads that one flow has not read to their end; further requests of it wait. Default 500. */
  unreadPerFlow: number
  /** Open watches of one user; the next one gets 429. Default 15,000. */
  watchesPerUser: number
  /** Open watches of all users. Default 30,000. */
  watches: number
}

/** The expected cost of a request, from the length of its body and the recent costs of its user. */
const bodyBytesPerMs = 8 * 1024
/** A request below these limits is quick; only `startsPerTick` bounds quick requests. */
const smallBodyBytes = 4 * 1024
const quickMs = 1
/** Slow requests start in one tick up to this expected cost, and at least one. */
const slowMsPerTick = 8
/** The share of a user's recent cost that each quick request removes. */
const costDecay = 0.1

export type FairnessStats = { inFlight: number; waiting: number; rejected: number; flows: number }

/**
 * Whose requests a flow has: those of a user, for Leases a flow of their own, because a busy client must still be able to renew them; or those
 * of a network, for requests without a user.
 */
export type FlowKind = 'user' | 'leases' | 'network'

/** The requests of one client. */
export type Flow = {
  /** The user, or the network. */
  readonly client: string
  running: number
  bodyBytes: number
  /** Responses to reads that are being sent; a watch is none of them. */
  unread: number
  watches: number
  /** The tick in which `started` was counted. */
  tick: number
  started: number
  /** The recent cost of its requests in milliseconds: rises to the slowest immediately, decays slowly. */
  costMs: number
  readonly waiting: QueuedRequest[]
  /** Index of the first request that still waits; started ones are removed in bulk. */
  next: number
}

type QueuedRequest = { readonly bodyBytes: number; readonly resolve: (flow: Flow) => void }

const defaults: FairnessLimits = {
  inFlight: 2_000,
  inFlightPerFlow: 500,
  bodyBytesPerFlow: 32 * 1024 * 1024,
  waitingPerFlow: 2_000,
  unreadPerFlow: 500,
  startsPerTick: 32,
  startsPerTickAlone: 256,
  watchesPerUser: 15_000,
  watches: 30_000,
}

/**
 * A flow may start a request while it has less than this share of the free ones. A flow alone gets a quarter of `inFlight`, and each further one
 * a quarter of what the ones before left: 10 accounts that never finish their requests leave 111 of 2,000 to others.
 */
const freeShare = 1 / 3

/** For how many ticks the server counts as shared after two flows were active in one tick. */
const sharedForTicks = 64
/** Waiting requests of all flows that start in one tick: new requests are read in between. */
const maxResumedPerTick = 256
/** Above this many flows, idle ones are removed. */
const maxIdleFlows = 10_000

/**
 * Fair queueing between clients, which are users or, without a user, networks: each has a queue, and the queues are served round-robin.
 *
 * Nearly all work of a request happens in the tick (iteration of the event loop) in which it is read, and one tick reads from all
 * sockets that are ready. So the resource that users compete for is the tick: a flow starts a bounded number of requests in one tick,
 * and further ones wait in its queue. Between ticks, the queues are served round-robin, one request each. So a request waits for at
 * most one request of each other user, plus those already started in the tick. A client whose requests wait gets no responses and
 * sends no further requests.
 *
 * No user is exempt: an administrator can neither be locked out nor lock out others. Health and version requests do not go through
 * these queues.
 */
export class Fairness {
  readonly #limits: FairnessLimits
  readonly #flows: Readonly<Record<FlowKind, Map<string, Flow>>> = { user: new Map(), leases: new Map(), network: new Map() }
  /** Flows with waiting requests, in round-robin order. */
  #queue: Flow[] = []
  #tick = 1
  #flowsInTick = 0
  /** Expected cost in milliseconds of the slow requests that started in this tick. */
  #slowMsInTick = 0
  #sharedUntilTick = 0
  #isTickEndScheduled = false
  #inFlight = 0
  #waiting = 0
  #watches = 0
  #rejected = 0

  constructor(limits: Partial<FairnessLimits> = {}) {
    this.#limits = { ...defaults, ...limits }
  }

  /**
   * Lets a request start: immediately (returns its flow), or later (returns a promise). {@link release} must be called when it ends.
   * @param bodyBytes the declared length of its body.
   * @throws {StatusError} TooManyRequests when too many requests of the user wait already.
   */
  acquire(client: string, kind: FlowKind, bodyBytes: number): Flow | Promise<Flow> {
    const flow = this.#flowOf(client, this.#flows[kind])
    if (flow.tick !== this.#tick) this.#enterTick(flow)
    if (flow.next === flow.waiting.length && this.#canStart(flow, bodyBytes)) {
      this.#start(flow, bodyBytes)
      return flow
    }
    if (flow.waiting.length - flow.next >= this.#limits.waitingPerFlow)
      throw this.#reject(`${client} has ${this.#limits.waitingPerFlow} waiting requests`)
    return new Promise(resolve => {
      if (flow.next === flow.waiting.length) this.#queue.push(flow)
      flow.waiting.push({ bodyBytes, resolve })
      this.#waiting++
    })
  }

  release(flow: Flow, bodyBytes: number): void {
    flow.running--
    flow.bodyBytes -= bodyBytes
    this.#inFlight--
    if (this.#waiting > 0) this.#scheduleTickEnd()
  }

  /**
   * Starts `work` when the client may start a request. Only the start is limited: for requests that wait for a body, or for others, and limit
   * their concurrency themselves.
   * @throws {StatusError} TooManyRequests as {@link acquire}.
   */
  async start(client: string, kind: FlowKind, work: () => Promise<void>): Promise<void> {
    const acquired = this.acquire(client, kind, 0)
    const flow = acquired instanceof Promise ? await acquired : acquired
    let done: Promise<void>
    try {
      done = work()
    } finally {
      this.release(flow, 0)
    }
    await done
  }

  /** Records for how long a request of `flow` blocked the event loop. */
  recordCost(flow: Flow, ms: number): void {
    flow.costMs = ms >= flow.costMs ? ms : flow.costMs + (ms - flow.costMs) * costDecay
  }

  /**
   * Counts a response until `done` settles. A read does not count as a concurrent request while it is being sent, because the client decides how
   * long that takes; but each such response has buffers.
   */
  async countUnread(flow: Flow, done: Promise<void>): Promise<void> {
    flow.unread++
    try {
      await done
    } finally {
      flow.unread--
      if (this.#waiting > 0) this.#scheduleTickEnd()
    }
  }

  /**
   * Counts a watch, which does not count as a concurrent request. The returned function must be called when it ends.
   * @throws {StatusError} TooManyRequests when too many watches are open.
   */
  openWatch(flow: Flow): () => void {
    const { watches, watchesPerUser } = this.#limits
    if (flow.watches >= watchesPerUser) throw this.#reject(`${flow.client} has ${watchesPerUser} open watches`)
    if (this.#watches >= watches) throw this.#reject(`the server has ${watches} open watches`)
    flow.watches++
    this.#watches++
    return () => {
      flow.watches--
      this.#watches--
    }
  }

  stats(): FairnessStats {
    return { inFlight: this.#inFlight, waiting: this.#waiting, rejected: this.#rejected, flows: sizeOf(this.#flows) }
  }

  #flowOf(client: string, flows: Map<string, Flow>): Flow {
    let flow = flows.get(client)
    if (flow) return flow
    if (flows.size >= maxIdleFlows) {
      for (const [name, { running, waiting, next, unread, watches }] of flows) {
        if (running === 0 && waiting.length === next && unread === 0 && watches === 0) flows.delete(name)
      }
    }
    flow = { client, running: 0, bodyBytes: 0, unread: 0, watches: 0, tick: 0, started: 0, costMs: 0, waiting: [], next: 0 }
    flows.set(client, flow)
    return flow
  }

  #enterTick(flow: Flow): void {
    flow.tick = this.#tick
    flow.started = 0
    if (++this.#flowsInTick === 2) this.#sharedUntilTick = this.#tick + sharedForTicks
  }

  #canStart(flow: Flow, bodyBytes: number): boolean {
    const { inFlight, inFlightPerFlow, bodyBytesPerFlow, unreadPerFlow, startsPerTick, startsPerTickAlone } = this.#limits
    const slow = expectedMs(flow, bodyBytes)
    return (
      flow.started < (this.#tick < this.#sharedUntilTick ? startsPerTick : startsPerTickAlone) &&
      flow.running < inFlightPerFlow &&
      flow.unread < unreadPerFlow &&
      this.#inFlight < inFlight &&
      (flow.running === 0 || flow.running < (inFlight - this.#inFlight) * freeShare) &&
      (flow.bodyBytes + bodyBytes <= bodyBytesPerFlow || flow.bodyBytes === 0) &&
      (slow === 0 || this.#slowMsInTick === 0 || this.#slowMsInTick + slow <= slowMsPerTick)
    )
  }

  #start(flow: Flow, bodyBytes: number): void {
    flow.started++
    flow.running++
    flow.bodyBytes += bodyBytes
    this.#inFlight++
    this.#slowMsInTick += expectedMs(flow, bodyBytes)
    // The counters of this tick are reset at its end.
    this.#scheduleTickEnd()
  }

  #scheduleTickEnd(): void {
    if (this.#isTickEndScheduled) return
    this.#isTickEndScheduled = true
    setImmediate(this.#endTick)
  }

  readonly #endTick = (): void => {
    this.#isTickEndScheduled = false
    this.#tick++
    this.#flowsInTick = 0
    this.#slowMsInTick = 0
    if (this.#waiting > 0) this.#resume()
  }

  /** Starts waiting requests round-robin, one per flow, as far as the limits allow. */
  #resume(): void {
    if (this.#queue.length > 1) this.#sharedUntilTick = this.#tick + sharedForTicks
    const held: Flow[] = []
    let resumed = 0
    for (let index = 0; index < this.#queue.length; index++) {
      const flow = this.#queue[index]!
      if (resumed >= maxResumedPerTick) {
        held.push(flow)
        continue
      }
      if (flow.tick !== this.#tick) this.#enterTick(flow)
      const first = flow.waiting[flow.next]!
      if (!this.#canStart(flow, first.bodyBytes)) {
        held.push(flow)
        continue
      }
      this.#start(flow, first.bodyBytes)
      this.#waiting--
      resumed++
      first.resolve(flow)
      if (++flow.next === flow.waiting.length) {
        flow.waiting.length = 0
        flow.next = 0
        continue
      }
      if (flow.next === 256) {
        flow.waiting.splice(0, 256)
        flow.next = 0
      }
      this.#queue.push(flow)
    }
    // Flows blocked by a limit per tick continue in the next tick; those blocked by other limits continue when a request ends.
    this.#queue = held
  }

  #reject(why: string): StatusError {
    this.#rejected++
    return new StatusError('TooManyRequests', `too many requests, please try again later: ${why}`, { details: { retryAfterSeconds: 1 } })
  }
}

const sizeOf = ({ user, leases, network }: Readonly<Record<FlowKind, Map<string, Flow>>>) => user.size + leases.size + network.size

/** The expected cost of a request in milliseconds; 0 for a quick one. */
function expectedMs({ costMs }: Flow, bodyBytes: number): number {
  return (costMs > quickMs ? costMs : 0) + (bodyBytes > smallBodyBytes ? bodyBytes / bodyBytesPerMs : 0)
}
