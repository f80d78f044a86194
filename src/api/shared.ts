import { durationPattern, Type } from '../kubernetes/object/index.ts'

/** A duration field such as `90s` or `1h30m`. */
export const duration = (options: { description: string; default?: string }) => Type.String({ pattern: durationPattern, ...options })

/** A quantity of memory such as `512Mi` or `1G`. */
export const quantity = (options: { description: string }) =>
  Type.String({ pattern: '^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|k|M|G|T)?$', ...options })

/** From the highest to the lowest. */
export const priorityClasses = ['Interactive', 'Change', 'Drift'] as const
export type PriorityClass = (typeof priorityClasses)[number]

/** From the weakest to the strongest; see docs/isolation.md. */
export const isolationLevels = ['Process', 'Sandbox', 'Pod'] as const
export type IsolationLevel = (typeof isolationLevels)[number]

/** Number of resources that a plan adds, changes and destroys. A replacement counts as one add and one destroy. */
export const planSummary = {
  add: Type.Integer({ description: 'Number of resources that the plan adds. A replacement counts as one add and one destroy.' }),
  change: Type.Integer({ description: 'Number of resources that the plan changes in place.' }),
  destroy: Type.Integer({ description: 'Number of resources that the plan destroys.' }),
}
