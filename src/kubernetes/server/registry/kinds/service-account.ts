import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const mountableSecrets = 'kubernetes.io/enforce-mountable-secrets'

export const serviceAccountKinds: readonly KindDeclaration[] = [
  {
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    shortNames: ['sa'],
    typeName: 'io.k8s.api.core.v1.ServiceAccount',
    returnDeletedObject: true,
    warnings: ({ metadata: { annotations } }, oldObject) => {
      if (annotations?.[mountableSecrets] === undefined || oldObject?.metadata.annotations?.[mountableSecrets] !== undefined) return []
      const reason = 'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets'
      return [`metadata.annotations[${mountableSecrets}]: ${reason}`]
    },
    columns: [
      nameColumn,
      column('Secrets', 'How many secrets it names.', object => (Array.isArray(object.secrets) ? object.secrets.length : 0)),
      ageColumn,
    ],
  },
]
