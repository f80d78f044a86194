import { ClientClosedError } from './connection-error.ts'
import { onAbort } from './on-abort.ts'
import { type PendingRequest, PipelinedConnection } from './pipelined-connection.ts'
import { type SerializedHeaders, serializeRequest } from './serialize-request.ts'
import type { TlsOptions } from './tls-options.ts'
import type { TransportRequest, TransportResponse } from './transport.ts'

export type ConnectionPoolOptions = {
  /** `https://host:port` or `http://host:port`. */
  origin: string
  /** Connections use this Unix socket. Default: the host and port of `origin`. */
  socketPath?: string | undefined
  tls: TlsOptions
  /** How many connections are opened before requests share one. */
  preferredConnections: number
  /** How many requests may await their responses on one connection before more than `preferredConnections` are opened. */
  maxPipelined: number
  maxConnections: number
  connectTimeoutMs: number
  keepAliveMs: number
  maxResponseBytes: number
}

/** How often connections are checked for timeouts: a timeout is late by at most this. */
const timeoutCheckMs = 500

/**
 * Short requests over few HTTP/1.1 connections, pipelined: several are in flight on each. What is sent within one turn of
 * the event loop leaves in one write per connection: one TLS record and one system call for many requests, on both sides.
 * A connection that breaks fails its requests in flight, and the caller decides which ones to retry. After
 * `Connection: close` the pool resends them on its own, since the server guarantees not to have begun them.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions
  readonly #host: string
  readonly #connections: PipelinedConnection[] = []
  readonly #queue: PendingRequest[] = []
  readonly #serializedHeaders: SerializedHeaders = new Map()
  #queueHead = 0
  /** In this turn of the event loop, by `batchKey` of the requests that they have. */
  readonly #batches = new Map<string, PipelinedConnection>()
  #timer: NodeJS.Timeout | undefined
  #isDraining = false
  /** Why it is closed; undefined: it is not. */
  #closed: Error | undefined

  constructor(options: ConnectionPoolOptions) {
    this.#options = options
    this.#host = new URL(options.origin).host
  }

  /** Rejects with an error that has a `code`, or with the reason of the signal. */
  request(request: TransportRequest): Promise<TransportResponse> {
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs } = request
      if (signal?.aborted) return reject(signal.reason)
      if (this.#closed) return reject(this.#closed)
      const body = (request.body ?? '') as string
      let release: (() => void) | undefined
      // Part of the literal: V8 allocates a function that is assigned to a property in the old generation, where it holds all that it refers to until a full
      // collection.
      const pending: PendingRequest = {
        text: serializeRequest(request, this.#host, body, this.#serializedHeaders),
        sentMs: 0,
        timeoutMs,
        isCanceled: false,
        beforeSend: request.beforeSend,
        resetSignal: request.resetSignal,
        batchKey: request.batchKey,
        resolve: response => {
          release?.()
          resolve(response)
        },
        reject: error => {
          release?.()
          reject(error)
        },
      }
      if (signal)
        release = onAbort(signal, () => {
          pending.isCanceled = true
          reject(signal.reason)
        })
      this.#dispatch(pending)
    })
  }

  /** Finishes the requests in flight and in the queue, then closes. The caller sends no further ones. */
  drain(): void {
    this.#isDraining = true
    this.#drainConnections()
  }

  /** Closes all connections and fails their requests with `error`. */
  destroy(error: Error = new ClientClosedError()): void {
    this.#closed = error
    clearInterval(this.#timer)
    for (const pending of this.#queue.splice(this.#queueHead)) pending.reject(error)
    this.#queue.length = 0
    this.#queueHead = 0
    for (const connection of [...this.#connections]) connection.destroy(error)
  }

  #dispatch(pending: PendingRequest): void {
    const { preferredConnections, maxPipelined, maxConnections } = this.#options
    const { batchKey } = pending
    const batch = batchKey === undefined ? undefined : this.#batches.get(batchKey)
    if (batch?.canJoinBatch && batch.inFlight < maxPipelined) {
      batch.send(pending)
      return
    }
    let best: PipelinedConnection | undefined
    for (const connection of this.#connections) {
      if (connection.acceptsRequests && (!best || connection.inFlight < best.inFlight)) best = connection
      if (best?.inFlight === 0) break
    }
    const hasCapacity = best && best.inFlight < maxPipelined
    const mayOpen = this.#connections.length < (hasCapacity ? preferredConnections : maxConnections)
    if (best && (best.inFlight === 0 || (hasCapacity && !mayOpen))) {
      best.send(pending)
      if (batchKey !== undefined && best.inFlight === 1 && best.canJoinBatch) this.#beginBatch(batchKey, best)
      return
    }
    if (mayOpen) {
      this.#open().send(pending)
      return
    }
    this.#queue.push(pending)
  }

  #beginBatch(batchKey: string, connection: PipelinedConnection): void {
    if (this.#batches.size === 0) setImmediate(() => this.#batches.clear())
    this.#batches.set(batchKey, connection)
  }

  #open(): PipelinedConnection {
    const connection = new PipelinedConnection(this.#options, {
      onCapacity: () => this.#sendQueued(connection),
      onClosed: unsent => {
        const index = this.#connections.indexOf(connection)
        if (index >= 0) this.#connections.splice(index, 1)
        if (this.#connections.length === 0) {
          clearInterval(this.#timer)
          this.#timer = undefined
        }
        for (const pending of unsent) {
          if (this.#closed) pending.reject(this.#closed)
          else if (!pending.isCanceled) this.#dispatch(pending)
        }
        if (this.#queue.length > this.#queueHead && !this.#closed && this.#connections.length < this.#options.maxConnections) {
          this.#sendQueued(this.#open())
        }
        this.#drainConnections()
      },
    })
    this.#connections.push(connection)
    if (!this.#timer) {
      this.#timer = setInterval(() => this.#checkTimeouts(), timeoutCheckMs)
      this.#timer.unref()
    }
    return connection
  }

  #sendQueued(connection: PipelinedConnection): void {
    while (this.#queueHead < this.#queue.length && connection.acceptsRequests && connection.inFlight < this.#options.maxPipelined) {
      const pending = this.#queue[this.#queueHead++] as PendingRequest
      if (!pending.isCanceled) connection.send(pending)
    }
    if (this.#queueHead === this.#queue.length) {
      this.#queue.length = 0
      this.#queueHead = 0
    } else if (this.#queueHead > 1_024) {
      this.#queue.splice(0, this.#queueHead)
      this.#queueHead = 0
    }
    this.#drainConnections()
  }

  /** A draining connection accepts no requests, so none may drain while requests are queued. */
  #drainConnections(): void {
    if (!this.#isDraining || this.#queue.length > this.#queueHead) return
    for (const connection of [...this.#connections]) connection.drain()
  }

  #checkTimeouts(): void {
    const nowMs = performance.now()
    for (const connection of [...this.#connections]) connection.checkTimeouts(nowMs)
  }
}
