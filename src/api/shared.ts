import { durationPattern, Type } from '../kube/index.ts'

/** A duration field such as `90s` or `1h30m`. */
export const duration = (options: { description: string; default?: string }) => Type.String({ pattern: durationPattern, ...options })

/** kstatus conditions: https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus */
export const conditions = Type.Array(
  Type.Object({
    type: Type.String(),
    status: Type.Enum(['True', 'False', 'Unknown']),
    reason: Type.String(),
    message: Type.String(),
    lastTransitionTime: Type.String({ format: 'date-time' }),
    observedGeneration: Type.Optional(Type.Integer()),
  }),
  { description: 'How things stand, by kstatus.', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] },
)

/** In the order in which they go. */
export const priorityClasses = ['Interactive', 'Change', 'Drift'] as const
export type PriorityClass = (typeof priorityClasses)[number]

/** How many resources a plan would add, change and destroy. A replacement counts as one add and one destroy. */
export const planSummary = { add: Type.Integer(), change: Type.Integer(), destroy: Type.Integer() }
