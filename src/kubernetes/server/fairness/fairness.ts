import { StatusError } from '../../object/index.ts'

export type FairnessLimits = {
  /** Requests of all users that are being worked on at once; the others wait. Default 2,000. */
  inFlight: number
  /** Of one flow; it leaves room for others. Default 1,000. */
  inFlightPerFlow: number
  /** Bytes of bodies of one flow that are being worked on; one request is always let through. Default 32 MiB. */
  bodyBytesPerFlow: number
  /** Requests of one flow that wait; the next is answered with 429. Default 2,000. */
  waitingPerFlow: number
  /** Requests of one flow that begin in one turn of the event loop while other flows are active. Default 32. */
  startsPerTick: number
  /** The same while no other flow is active. Default 256. */
  startsPerTickAlone: number
  /** Open watches of one user; the next is answered with 429. Default 15,000. */
  watchesPerUser: number
  /** Open watches of all users. Default 30,000. */
  watches: number
}

/** What a request is expected to take of its turn, by the length of its body and what others of its user took. */
const bodyBytesPerMs = 8 * 1024
/** Below these a request counts as one of many: `perTurn` bounds those. */
const smallBodyBytes = 4 * 1024
const quickMs = 1
/** What is expected to take long begins in a turn up to this much, and one in any case. */
const slowMsPerTick = 8
/** How much of the last cost of a user is forgotten with each quick request. */
const costDecay = 0.1

export type FairnessStats = { inFlight: number; waiting: number; rejected: number; flows: number }

/** The requests of one user. Those for Leases are a flow of their own: a client that is busy must still be able to say that it lives. */
export type Flow = {
  readonly user: string
  running: number
  bodyBytes: number
  watches: number
  /** The turn in which `begun` was counted. */
  tick: number
  started: number
  /** What its requests took lately, in milliseconds: at once as much as the slowest, falling slowly. */
  costMs: number
  readonly waiting: QueuedRequest[]
  /** Waiting from here on: taken ones are cut off in bulk. */
  next: number
}

type QueuedRequest = { readonly bodyBytes: number; readonly resolve: (flow: Flow) => void }

const defaults: FairnessLimits = {
  inFlight: 2_000,
  inFlightPerFlow: 1_000,
  bodyBytesPerFlow: 32 * 1024 * 1024,
  waitingPerFlow: 2_000,
  startsPerTick: 32,
  startsPerTickAlone: 256,
  watchesPerUser: 15_000,
  watches: 30_000,
}

/** How many turns a server counts as shared after two flows were active in one. */
const sharedForTicks = 64
/** Waiting requests that begin in one turn, all flows together: new requests are read in between. */
const maxResumedPerTick = 256
/** Above this many flows, idle ones are forgotten. */
const maxIdleFlows = 10_000

/**
 * Fair queueing between users, in its simplest useful form: who is busy waits for its turn, and turns go round.
 *
 * Nearly all work of a request is done in the turn of the event loop in which it is read, and one turn reads from as many
 * sockets as are ready. So what one user can take from another is the rest of a turn: a flow begins only so many requests in one,
 * and what it sends beyond waits in its queue. Between turns the queues are served one request each, round and round; a user with
 * one request is never behind more than one of each other user, and what a turn had begun already. A client whose requests
 * wait is not answered, and sends no more.
 *
 * Nobody is exempt: an administrator has a turn like everybody, and so cannot be locked out, nor lock out others. Health and
 * version do not come here.
 */
export class Fairness {
  readonly #limits: FairnessLimits
  readonly #flows = new Map<string, Flow>()
  readonly #leaseFlows = new Map<string, Flow>()
  /** Flows with requests that wait, in the order of their turns. */
  #queue: Flow[] = []
  #tick = 1
  #flowsInTick = 0
  /** Milliseconds that what began in this turn is expected to take, quick requests not counted. */
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
   * Lets a request begin: at once (its flow is returned), or when it is its turn. Call {@link release} at its end, always.
   * @param bodyBytes the length of its body, as far as the client has said.
   * @throws {StatusError} TooManyRequests when too many wait already.
   */
  acquire(user: string, isLease: boolean, bodyBytes: number): Flow | Promise<Flow> {
    const flow = this.#flowOf(user, isLease ? this.#leaseFlows : this.#flows)
    if (flow.tick !== this.#tick) this.#enterTick(flow)
    if (flow.next === flow.waiting.length && this.#canStart(flow, bodyBytes)) {
      this.#start(flow, bodyBytes)
      return flow
    }
    if (flow.waiting.length - flow.next >= this.#limits.waitingPerFlow) throw this.#reject(`${user} has too many requests that wait`)
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

  /** Says how long a request of `flow` kept the event loop to itself. */
  recordCost(flow: Flow, ms: number): void {
    flow.costMs = ms >= flow.costMs ? ms : flow.costMs + (ms - flow.costMs) * costDecay
  }

  /**
   * Counts a watch, which is no request in flight; call what is returned when it ends.
   * @throws {StatusError} TooManyRequests when there are too many.
   */
  openWatch(flow: Flow): () => void {
    const { watches, watchesPerUser } = this.#limits
    if (flow.watches >= watchesPerUser) throw this.#reject(`${flow.user} has ${watchesPerUser} open watches`)
    if (this.#watches >= watches) throw this.#reject(`the server has ${watches} open watches`)
    flow.watches++
    this.#watches++
    return () => {
      flow.watches--
      this.#watches--
    }
  }

  stats(): FairnessStats {
    return { inFlight: this.#inFlight, waiting: this.#waiting, rejected: this.#rejected, flows: this.#flows.size + this.#leaseFlows.size }
  }

  #flowOf(user: string, flows: Map<string, Flow>): Flow {
    let flow = flows.get(user)
    if (flow) return flow
    if (flows.size >= maxIdleFlows) {
      for (const [name, { running, waiting, next, watches }] of flows) {
        if (running === 0 && waiting.length === next && watches === 0) flows.delete(name)
      }
    }
    flow = { user, running: 0, bodyBytes: 0, watches: 0, tick: 0, started: 0, costMs: 0, waiting: [], next: 0 }
    flows.set(user, flow)
    return flow
  }

  #enterTick(flow: Flow): void {
    flow.tick = this.#tick
    flow.started = 0
    if (++this.#flowsInTick === 2) this.#sharedUntilTick = this.#tick + sharedForTicks
  }

  #canStart(flow: Flow, bodyBytes: number): boolean {
    const { inFlight, inFlightPerFlow, bodyBytesPerFlow, startsPerTick, startsPerTickAlone } = this.#limits
    const slow = expectedMs(flow, bodyBytes)
    return (
      flow.started < (this.#tick < this.#sharedUntilTick ? startsPerTick : startsPerTickAlone) &&
      flow.running < inFlightPerFlow &&
      this.#inFlight < inFlight &&
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
    // Whatever begins in a turn ends with it.
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

  /** One request of each flow that waits, round and round, as far as limits allow. */
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
    // Those held by the limit of a turn go on in the next, which comes; those held by other limits when a request ends.
    this.#queue = held
  }

  #reject(why: string): StatusError {
    this.#rejected++
    return new StatusError('TooManyRequests', `too many requests, please try again later: ${why}`, { details: { retryAfterSeconds: 1 } })
  }
}

/** 0 for a request that is expected to be quick. */
function expectedMs({ costMs }: Flow, bodyBytes: number): number {
  return (costMs > quickMs ? costMs : 0) + (bodyBytes > smallBodyBytes ? bodyBytes / bodyBytesPerMs : 0)
}
