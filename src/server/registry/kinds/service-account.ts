import { ageColumn, column, nameColumn } from '../columns.ts'
import type { Row } from './row.ts'

export const serviceAccountKinds: readonly Row[] = [
  {
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    shortNames: ['sa'],
    schema: 'io.k8s.api.core.v1.ServiceAccount',
    answersDeleted: true,
    columns: [
      nameColumn,
      column('Secrets', 'How many secrets it names.', object => (Array.isArray(object.secrets) ? object.secrets.length : 0)),
      ageColumn,
    ],
  },
]
