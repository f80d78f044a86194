import { invalidValue, qualifiedNameErrors, requiredValue, type StatusCause, unsupportedValue } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type Fields, negativeErrors } from '../type-rules/index.ts'
import { numberColumn, textAt } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const policyKinds: readonly KindDeclaration[] = [
  {
    group: 'policy',
    kind: 'PodDisruptionBudget',
    plural: 'poddisruptionbudgets',
    shortNames: ['pdb'],
    typeName: 'io.k8s.api.policy.v1.PodDisruptionBudget',
    hasStatus: true,
    hasGeneration: true,
    columns: [
      nameColumn,
      column('Min Available', 'The minimum number of pods that must be available.', object => textAt(object, 'spec.minAvailable', 'N/A')),
      column('Max Unavailable', 'The maximum number of pods that may be unavailable.', object =>
        textAt(object, 'spec.maxUnavailable', 'N/A'),
      ),
      numberColumn('Allowed Disruptions', 'Calculated number of pods that may be disrupted at this time.', 'status.disruptionsAllowed'),
      ageColumn,
    ],
    validateStatusUpdate: ({ status }) => {
      const { conditions = [], ...counts } = (status ?? {}) as { conditions?: Fields[] } & Fields
      return [
        ...conditions.flatMap((condition, index) => conditionErrors(condition, `status.conditions[${index}]`)),
        ...negativeErrors(counts, 'status', ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods']),
      ]
    },
  },
]

/** The rules of `metav1.Condition`, which Kubernetes applies to few of its own kinds. */
function conditionErrors({ type, status, reason, lastTransitionTime }: Fields, path: string): StatusCause[] {
  const causes = qualifiedNameErrors(String(type ?? '')).map(message => invalidValue(`${path}.type`, type ?? '', message))
  const allowed = ['False', 'True', 'Unknown']
  if (!allowed.includes(String(status))) causes.push(unsupportedValue(`${path}.status`, status ?? '', allowed))
  if (!lastTransitionTime) causes.push(requiredValue(`${path}.lastTransitionTime`))
  if (!reason) causes.push(requiredValue(`${path}.reason`))
  return causes
}
