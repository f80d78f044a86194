import { durationPattern, Type } from '../kubernetes/object/index.ts'

/** A duration field such as `90s` or `1h30m`. */
export const duration = (options: { description: string; default?: string }) => Type.String({ pattern: durationPattern, ...options })

/** A quantity of memory such as `512Mi` or `1G`. */
export const quantity = (options: { description: string }) =>
  Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$', ...options })

/** The largest number of a counter, an epoch or a generation. Every client can represent it and the next one exactly. */
export const maxCount = 2 ** 31 - 1

/** A counter or a sequence number. */
export const count = (description: string) => Type.Integer({ minimum: 0, maximum: maxCount, description })

/** A number of bytes. */
export const byteCount = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

/** From the highest to the lowest. */
export const priorityClasses = ['Interactive', 'Change', 'Drift'] as const
export type PriorityClass = (typeof priorityClasses)[number]

/** From the weakest to the strongest; see docs/isolation.md. */
export const isolationLevels = ['Process', 'Sandbox', 'Pod'] as const
export type IsolationLevel = (typeof isolationLevels)[number]

/** Networks of a Run, in the order in which they are the default; see docs/isolation.md. */
export const networks = ['Private', 'None', 'Host'] as const
export type Network = (typeof networks)[number]

/** Which Pod a worker is: the one with its name in this namespace. */
export const podFields = {
  namespace: Type.String({ maxLength: 63, description: 'Namespace of the Pod.' }),
  uid: Type.Optional(
    Type.String({
      maxLength: 64,
      pattern: '^[0-9A-Za-z-]+$',
      description: 'UID of the Pod. Set once. Unset: the worker has not registered yet.',
    }),
  ),
}

/** Number of resources that a plan adds, changes and destroys. A replacement counts as one add and one destroy. */
export const planSummary = {
  add: count('Number of resources that the plan adds. A replacement counts as one add and one destroy.'),
  change: count('Number of resources that the plan changes in place.'),
  destroy: count('Number of resources that the plan destroys.'),
}
