import { forbiddenField, invalidValue, type KubeObject, type StatusCause } from '../../../object/index.ts'
import { forbiddenError } from '../admission/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { numberAt, numberColumn, textAt, valueAtPath } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

/** The PriorityClasses of Kubernetes' own Pods, which every cluster has. Other names must not begin with `system-`. */
export const systemPriorityClasses: readonly { name: string; value: number; description: string }[] = [
  {
    name: 'system-node-critical',
    value: 2_000_001_000,
    description: 'Used for system critical pods that must not be moved from their current node.',
  },
  {
    name: 'system-cluster-critical',
    value: 2_000_000_000,
    description: 'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  },
]
const systemValues = new Map(systemPriorityClasses.map(({ name, value }) => [name, value]))

export const schedulingKinds: readonly KindDeclaration[] = [
  {
    group: 'scheduling.k8s.io',
    kind: 'PriorityClass',
    plural: 'priorityclasses',
    shortNames: ['pc'],
    cluster: true,
    typeName: 'io.k8s.api.scheduling.v1.PriorityClass',
    hasGeneration: true,
    // The kind has no desired state.
    incrementsGeneration: () => false,
    columns: [
      nameColumn,
      numberColumn(
        'Value',
        'value represents the integer value of this priority class. This is the actual priority that pods receive when they have the name of this class in their pod spec.',
        'value',
      ),
      {
        ...column(
          'Global-Default',
          'globalDefault specifies whether this PriorityClass should be considered as the default priority for pods that do not have any priority class. Only one PriorityClass can be marked as `globalDefault`. However, if more than one PriorityClasses exists with their `globalDefault` field set to true, the smallest value of such global default PriorityClasses will be used as the default priority.',
          object => valueAtPath(object, 'globalDefault') === true,
        ),
        type: 'boolean',
      },
      ageColumn,
      column(
        'PreemptionPolicy',
        'preemptionPolicy is the Policy for preempting pods with lower priority. One of Never, PreemptLowerPriority. Defaults to PreemptLowerPriority if unset.',
        object => textAt(object, 'preemptionPolicy', ''),
      ),
    ],
    validate: (object, oldObject) => [...systemErrors(object), ...(oldObject ? changeErrors(object, oldObject) : [])],
    validateAdmission: (object, _, reader) => {
      if (valueAtPath(object, 'globalDefault') !== true) return
      const { name } = object.metadata
      for (const other of reader.all('priorityclasses.scheduling.k8s.io')) {
        if (valueAtPath(other, 'globalDefault') !== true || other.metadata.name === name) continue
        const reason = `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`
        throw forbiddenError({ group: 'scheduling.k8s.io', plural: 'priorityclasses' }, name, reason)
      }
    },
    validateDelete: ({ metadata: { name } }) =>
      systemValues.has(name) ? 'this is a system priority class and cannot be deleted' : undefined,
  },
]

function systemErrors(object: KubeObject): StatusCause[] {
  const { name } = object.metadata
  if (!name.startsWith('system-')) return []
  const value = numberAt(object, 'value')
  let reason = ''
  if (!systemValues.has(name)) reason = `${name} is not a known system priority class`
  else if (systemValues.get(name) !== value) reason = `value of ${name} PriorityClass must be ${systemValues.get(name)}`
  else if (valueAtPath(object, 'globalDefault') === true) reason = `globalDefault of ${name} PriorityClass must be false`
  const reserved = "priority class names with 'system-' prefix are reserved for system use only"
  return reason ? [forbiddenField('metadata.name', `${reserved}. error: ${reason}`)] : []
}

function changeErrors(object: KubeObject, oldObject: KubeObject): StatusCause[] {
  const causes: StatusCause[] = []
  if (numberAt(object, 'value') !== numberAt(oldObject, 'value')) causes.push(forbiddenField('value', 'may not be changed in an update.'))
  const policy = valueAtPath(object, 'preemptionPolicy')
  if (policy !== valueAtPath(oldObject, 'preemptionPolicy'))
    causes.push(invalidValue('preemptionPolicy', policy ?? null, 'field is immutable'))
  return causes
}
