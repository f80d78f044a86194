import { defaults, type Run } from '../../api/index.ts'
import { objectKey } from '../../kube/index.ts'
import { classRank } from './priority-class.ts'

/** What a Run needs of its Worker. */
export type Needs = {
  readonly pool: string
  readonly engine: string
  readonly engineVersion: string | undefined
  readonly labels: Readonly<Record<string, string>>
}

/** What the queue knows of a Run that waits. */
export type RunRequest = {
  /** `namespace/name` */
  readonly key: string
  readonly namespace: string
  /** 0 goes first ({@link classRank}). */
  readonly rank: number
  /** Higher goes first, within its tenant. */
  readonly priority: number
  /** From when its age counts, in milliseconds. */
  readonly sinceMs: number
  /** Orders Runs of one moment: creation times have whole seconds. */
  readonly tie: string
  readonly concurrency: { readonly key: string; readonly limit: number } | undefined
  readonly needs: Needs
  /** Equal for Runs with equal needs. */
  readonly shape: string
}

export function requestOf(run: Run): RunRequest {
  const { metadata, spec } = run
  const { stack } = spec
  const labels = stack.placement?.workerLabels ?? {}
  const needs: Needs = { pool: spec.pool, engine: stack.engine, engineVersion: stack.placement?.engineVersion, labels }
  const { concurrencyKey: key, concurrencyLimit: limit = defaults.concurrencyLimit } = stack
  return {
    key: objectKey(run),
    namespace: metadata.namespace ?? '',
    rank: classRank(run),
    priority: spec.priority,
    sinceMs: Date.parse(spec.queuedSince ?? metadata.creationTimestamp),
    // Rises with every write, so of Runs made in one second the first seen goes first; decimal, so the longer one is greater.
    tie: `${metadata.resourceVersion.padStart(20, '0')}/${metadata.uid}`,
    concurrency: key === undefined ? undefined : { key, limit },
    needs,
    shape: shapeOf(needs),
  }
}

function shapeOf({ pool, engine, engineVersion = '', labels }: Needs): string {
  const wanted = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
  return [pool, engine, engineVersion, ...wanted].join('\n')
}

/** True when the queue need not be told of the change from `a` to `b`. What orders Runs of one moment stays as first seen. */
export function isSameRequest(a: RunRequest, b: RunRequest): boolean {
  return (
    a.shape === b.shape &&
    a.rank === b.rank &&
    a.priority === b.priority &&
    a.sinceMs === b.sinceMs &&
    a.concurrency?.key === b.concurrency?.key &&
    a.concurrency?.limit === b.concurrency?.limit
  )
}
