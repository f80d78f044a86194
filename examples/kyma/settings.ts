/** What an operator process of the experiment can be told. */
export type Settings = {
  kubeconfig: string
  /** Reconciles of components at once. */
  workers: number
  /** Reconciles of Kymas at once. */
  kymaWorkers: number
  backoff: { baseDelayMs?: number; maxDelayMs?: number }
  /** Client-side pace; undefined is none. */
  pace: { qps: number; burst: number } | undefined
  /** Connections that writes spread over; undefined is the client's default. */
  connections: number | undefined
  /** Whether each component's chart is rendered, and if so whether the result is kept for the next with the same inputs. */
  render: 'no' | 'once' | 'each'
  /** How many of the operator's requests fail, from 0 to 1. */
  faults: number
  /** Reconciles everything again after this long; undefined is never. */
  resyncMs: number | undefined
  /** How many components of a Kyma are created before another Kyma has its turn. */
  createsAtOnce: number
  /** Every change of a component reconciles its Kyma, as the original did. */
  noPredicates: boolean
  /** How long changes of components are collected before their Kyma is reconciled. */
  collectMs: number
  /** How long after one status write of a Kyma that still waits the next is held back; its success never is. */
  progressMs: number
  /** How many objects of a cache are kept parsed. */
  hotObjects: number
  /** Creates the components that take longest first, and lets those go first that still need longest. */
  longestFirst: boolean
  /** How long a second of the simulated installation takes. */
  secondMs: number
}

/** Parses `1s..1000s`, `5ms..1000s` or plain seconds `1..1000`. @throws {TypeError} saying what came. */
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
