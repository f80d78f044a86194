import { forbiddenField, type StatusCause, unsupportedValue } from '../../../object/index.ts'
import { numberOf } from './number-checks.ts'
import type { RuleTable } from './type-rules.ts'

const maxUserPriority = 1_000_000_000

/** Rules of the types in scheduling.k8s.io. Scheduling fields of Pods are in `scheduling-rules.ts`. */
export const priorityClassRules: RuleTable = {
  'scheduling.v1.PriorityClass': {
    defaults: { preemptionPolicy: 'PreemptLowerPriority' },
    uncheckedEnums: ['preemptionPolicy'],
    validate: ({ preemptionPolicy: policy, value }, { object }) => {
      const causes: StatusCause[] = []
      if (policy !== 'PreemptLowerPriority' && policy !== 'Never') {
        causes.push(unsupportedValue('preemptionPolicy', policy, ['PreemptLowerPriority', 'Never']))
      }
      if (!object.metadata.name.startsWith('system-') && numberOf(value) > maxUserPriority) {
        causes.push(forbiddenField('value', `maximum allowed value of a user defined priority is ${maxUserPriority}`))
      }
      return causes
    },
  },
}
