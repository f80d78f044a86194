/** Settings of an operator process of the experiment. */
export type Settings = {
  kubeconfig: string
  /** Identity and number of the replicas that share the keys; undefined: this operator has them all. */
  shards: { identity: string; slots: number } | undefined
  /** Concurrent reconciles of components. */
  workers: number
  /** Concurrent reconciles of Kymas. */
  kymaWorkers: number
  backoff: { baseDelayMs?: number; maxDelayMs?: number }
  /** Client-side rate limit; undefined: none. */
  rateLimit: { qps: number; burst: number } | undefined
  /** Connections that writes spread over; undefined: the client's default. */
  connections: number | undefined
  /** Whether charts are rendered, and if so whether the result is cached per inputs. */
  render: 'no' | 'once' | 'each'
  /** Fraction of the operator's requests that fail, from 0 to 1. */
  faults: number
  /** Resync interval; undefined: never. */
  resyncMs: number | undefined
  /** Components of one Kyma that are created per reconcile. */
  createsAtOnce: number
  /** Every change of a component reconciles its Kyma, as in the original. */
  noPredicates: boolean
  /** How long changes of components are batched before their Kyma is reconciled. */
  collectMs: number
  /** Minimum interval between status writes of a pending Kyma; its success is written immediately. */
  progressMs: number
  /** How many objects of a cache are kept parsed. */
  hotObjects: number
  /** Creates the slowest components first, and reconciles the longest remaining work first. */
  longestFirst: boolean
  /** Length of one second of the simulated installation. */
  secondMs: number
}

/** The ring of the operator's replicas, and the namespace of its Leases. */
export const ring = { name: 'kyma', namespace: 'default' }

/** Those of the operator in a cluster: what the experiment measured to be good. */
export const inCluster: Omit<Settings, 'kubeconfig' | 'shards'> = {
  ...{ workers: 32, kymaWorkers: 16, backoff: {}, rateLimit: undefined, connections: undefined, render: 'no', faults: 0 },
  ...{ resyncMs: 10 * 3_600_000, createsAtOnce: 1, noPredicates: false, collectMs: 200, progressMs: 10_000, hotObjects: 128 },
  ...{ longestFirst: true, secondMs: 1_000 },
}

/** Parses `1s..1000s`, `5ms..1000s` or plain seconds `1..1000`. @throws {TypeError} with the text that was given. */
export function parseBackoff(text: string): { baseDelayMs: number; maxDelayMs: number } {
  const match = /^(\d+(?:\.\d+)?)(ms|s)?\.\.(\d+(?:\.\d+)?)(ms|s)?$/.exec(text)
  if (!match) throw new TypeError(`--backoff must be MIN..MAX such as 1s..1000s or 5ms..30s, got ${JSON.stringify(text)}`)
  const [, min, minUnit, max, maxUnit] = match
  const baseDelayMs = Number(min) * (minUnit === 'ms' ? 1 : 1_000)
  const maxDelayMs = Number(max) * (maxUnit === 'ms' ? 1 : 1_000)
  if (baseDelayMs <= 0 || maxDelayMs < baseDelayMs) {
    throw new RangeError(`--backoff ${text}: MIN must be > 0 and MAX not below it`)
  }
  return { baseDelayMs, maxDelayMs }
}
