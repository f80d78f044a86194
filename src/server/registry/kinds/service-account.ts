import { ageColumn, column, nameColumn } from '../columns.ts'
import { localReference, type Row, text } from './row.ts'

export const serviceAccountKinds: readonly Row[] = [
  {
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    shortNames: ['sa'],
    description: 'ServiceAccount binds together a name, a principal that can be authenticated and authorized, and a set of secrets.',
    fields: {
      automountServiceAccountToken: {
        type: 'boolean',
        description: 'Whether pods running as this service account get an API token mounted.',
      },
      imagePullSecrets: {
        type: 'array',
        description: 'References to secrets in the same namespace to use for pulling any images.',
        items: localReference,
        'x-kubernetes-list-type': 'atomic',
      },
      secrets: {
        type: 'array',
        description: 'Secrets in the same namespace that pods running using this ServiceAccount are allowed to use.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { name: text('Name of the secret.') } },
      },
    },
    mergeKeys: { secrets: 'name', imagePullSecrets: 'name' },
    columns: [
      nameColumn,
      column('Secrets', 'How many secrets it names.', object => (Array.isArray(object.secrets) ? object.secrets.length : 0)),
      ageColumn,
    ],
  },
]
