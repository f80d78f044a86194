import { Type } from './declare.ts'

/** A Kubernetes condition. `lastTransitionTime` (RFC 3339) is when `status` last changed, not when it was last reported. */
export type Condition = {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number | undefined
}

/** The schema of `status.conditions` for your own kind: `status: Type.Object({ conditions: Type.Optional(conditionsSchema) })`. */
export const conditionsSchema = Type.Array(
  Type.Object({
    type: Type.String(),
    status: Type.Enum(['True', 'False', 'Unknown']),
    reason: Type.String(),
    message: Type.String(),
    lastTransitionTime: Type.String({ format: 'date-time' }),
    observedGeneration: Type.Optional(Type.Integer()),
  }),
  {
    description: 'The conditions of the object, compatible with kstatus.',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  },
)

/** A condition as a controller reports it; {@link setCondition} adds the transition time. */
export type ConditionUpdate = Omit<Condition, 'lastTransitionTime'>

/** Returns `conditions` with one of them set: its transition time changes only with its status, its position does not. */
export function setCondition(conditions: readonly Condition[] | undefined, update: ConditionUpdate, nowMs: number): Condition[] {
  const before = conditions ?? []
  const old = before.find(condition => condition.type === update.type)
  const lastTransitionTime = old?.status === update.status ? old.lastTransitionTime : rfc3339(nowMs)
  const next: Condition = { ...update, lastTransitionTime }
  return old ? before.map(condition => (condition === old ? next : condition)) : [...before, next]
}

export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find(condition => condition.type === type)
}

export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True'
}

/** Kubernetes' `metav1.Time`: RFC 3339 in UTC with whole seconds. */
export function rfc3339(ms: number): string {
  const second = Math.floor(ms / 1_000)
  // Usually the same second as in the previous call, and formatting a date costs a microsecond.
  if (second !== lastSecond) {
    lastText = `${new Date(ms).toISOString().slice(0, 19)}Z`
    lastSecond = second
  }
  return lastText
}

let lastSecond = Number.NaN
let lastText = ''

/** Kubernetes' `metav1.MicroTime`, as in Leases: RFC 3339 in UTC with six decimals (the last three are zeros). */
export function rfc3339Micro(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}
