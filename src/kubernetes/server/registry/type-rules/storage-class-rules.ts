import {
  duplicateValue,
  invalidValue,
  isJsonObject,
  qualifiedNameErrors,
  type StatusCause,
  tooLong,
  unsupportedValue,
} from '../../../object/index.ts'
import { duplicateIndexes } from './checks.ts'
import type { Fields, RuleTable } from './type-rules.ts'

const maxParameters = 512
const maxParameterBytes = 256 * 1024

/** Rules of the types in storage.k8s.io. Volumes and claims are in `volume-rules.ts`. */
export const storageClassRules: RuleTable = {
  'storage.v1.StorageClass': {
    defaults: { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' },
    required: { provisioner: '' },
    uncheckedEnums: ['reclaimPolicy'],
    validate: storageClassErrors,
  },
  'core.v1.TopologySelectorLabelRequirement': {
    required: { values: '' },
    validate: ({ key, values }, { path }) => [
      ...qualifiedNameErrors(String(key ?? '')).map(reason => invalidValue(`${path}.key`, key ?? '', reason)),
      ...duplicateIndexes((values ?? []) as string[]).map(index => duplicateValue(`${path}.values[${index}]`, (values as string[])[index])),
    ],
  },
}

function storageClassErrors({ provisioner, parameters, reclaimPolicy }: Fields): StatusCause[] {
  const causes: StatusCause[] = []
  if (typeof provisioner === 'string' && provisioner !== '') {
    const name = provisioner.toLowerCase()
    causes.push(...qualifiedNameErrors(name).map(reason => invalidValue('provisioner', name, reason)))
  }
  if (reclaimPolicy !== 'Delete' && reclaimPolicy !== 'Retain') {
    causes.push(unsupportedValue('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']))
  }
  if (!isJsonObject(parameters)) return causes
  const entries = Object.entries(parameters)
  if (entries.length > maxParameters) return [...causes, tooLong('parameters', maxParameters)]
  if (Object.hasOwn(parameters, '')) causes.push(invalidValue('parameters', '', 'field can not be empty.'))
  const bytes = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)), 0)
  if (bytes > maxParameterBytes) causes.push(tooLong('parameters', maxParameterBytes))
  return causes
}
