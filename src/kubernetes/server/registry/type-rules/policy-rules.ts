import { invalidValue } from '../../../object/index.ts'
import { intOrPercentErrors, over100PercentErrors } from './number-checks.ts'
import type { RuleTable } from './type-rules.ts'

export const policyRules: RuleTable = {
  'policy.v1.PodDisruptionBudgetSpec': {
    validate: (spec, { path }) => {
      const { minAvailable, maxUnavailable, selector = null, unhealthyPodEvictionPolicy = null } = spec
      const causes = ['minAvailable', 'maxUnavailable'].flatMap(field => [
        ...intOrPercentErrors(spec[field], `${path}.${field}`),
        ...over100PercentErrors(spec[field], `${path}.${field}`),
      ])
      if (minAvailable === undefined || maxUnavailable === undefined) return causes
      // Kubernetes prints the Go struct, so the field names are Go's.
      const goStruct = {
        MinAvailable: minAvailable,
        Selector: selector,
        MaxUnavailable: maxUnavailable,
        UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy,
      }
      return [invalidValue(path, goStruct, 'minAvailable and maxUnavailable cannot be both set'), ...causes]
    },
  },
}
