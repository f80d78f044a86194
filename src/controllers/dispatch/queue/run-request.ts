import { defaults, type Run, type RunSpec } from '../../../api/index.ts'
import { objectKey, parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'
import { classRank } from './priority-class.ts'

/** What a Run needs of its Worker. */
export type Requirements = {
  readonly pool: string
  readonly engine: string
  readonly engineVersion: string | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Undefined: any worker can give it. */
  readonly isolation: 'Sandbox' | 'Pod' | undefined
  /** 0: nothing in particular. */
  readonly cpuMillis: number
  /** 0: nothing in particular. */
  readonly memoryBytes: number
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
  /** Orders Runs of one moment, as creation times have whole seconds: the version they were first seen at. */
  readonly order: number
  /** Orders what is still equal. */
  readonly uid: string
  readonly concurrency: { readonly key: string; readonly limit: number } | undefined
  readonly requirements: Requirements
  /** Equal for Runs with equal needs. */
  readonly equivalenceKey: string
}

/** What a Run may use (`spec.resources`) is what its Worker must have left. */
export function requirementsOf({ pool, stack }: Pick<RunSpec, 'pool' | 'stack'>): Requirements {
  const { engine, placement, resources, isolation } = stack
  const level = isolation?.level ?? 'Process'
  return {
    pool,
    engine,
    engineVersion: placement?.engineVersion,
    labels: placement?.workerLabels ?? {},
    isolation: level === 'Process' ? undefined : level,
    cpuMillis: resources?.cpu === undefined ? 0 : quantityMillis(parseQuantity(resources.cpu)),
    memoryBytes: resources?.memory === undefined ? 0 : quantityValue(parseQuantity(resources.memory)),
  }
}

export function requestOf(run: Run): RunRequest {
  const { metadata, spec } = run
  const { stack } = spec
  const requirements = requirementsOf(spec)
  const { concurrencyKey: key, concurrencyLimit: limit = defaults.concurrencyLimit } = stack
  return {
    key: objectKey(run),
    namespace: metadata.namespace ?? '',
    rank: classRank(run),
    priority: spec.priority,
    sinceMs: Date.parse(spec.queuedSince ?? metadata.creationTimestamp),
    order: Number(metadata.resourceVersion),
    uid: metadata.uid,
    concurrency: key === undefined ? undefined : { key, limit },
    requirements,
    equivalenceKey: equivalenceKeyOf(requirements),
  }
}

function equivalenceKeyOf({ pool, engine, engineVersion = '', labels, isolation, cpuMillis, memoryBytes }: Requirements): string {
  const wanted = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
  return [pool, engine, engineVersion, isolation ?? '', cpuMillis, memoryBytes, ...wanted].join('\n')
}

/** True when the queue need not be told of the change from `a` to `b`. What orders Runs of one moment stays as first seen. */
export function isSameRequest(a: RunRequest, b: RunRequest): boolean {
  return (
    a.equivalenceKey === b.equivalenceKey &&
    a.rank === b.rank &&
    a.priority === b.priority &&
    a.sinceMs === b.sinceMs &&
    a.concurrency?.key === b.concurrency?.key &&
    a.concurrency?.limit === b.concurrency?.limit
  )
}
