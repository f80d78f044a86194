/** The kinds of the provider. `spec.forProvider` has the wanted fields, with names of PostgreSQL's documentation. */

import { managedColumns, managedSpec, managedStatus } from '../../../src/controllers/managed/index.ts'
import { defineResource, type Resource, Type } from '../../../src/kubernetes/index.ts'

const group = 'postgresql.oarlock.dev'
const version = 'v1alpha1'
const reference = Type.Object({ name: Type.String() })
const selector = Type.Object({ matchLabels: Type.Record(Type.String(), Type.String()) })

export const providerConfigResource = defineResource({
  ...{ group, version, kind: 'ProviderConfig', plural: 'providerconfigs', scope: 'Namespaced' },
  description: 'How to reach a PostgreSQL server.',
  spec: Type.Object({
    urlSecretRef: Type.Object(
      { name: Type.String(), key: Type.Optional(Type.String({ default: 'url' })) },
      { description: 'The Secret in the same namespace whose key holds the URL, such as postgresql://admin:PASSWORD@HOST:5432/postgres.' },
    ),
  }),
  status: Type.Object({}),
})

export const databaseResource = defineResource({
  ...{ group, version, kind: 'Database', plural: 'databases', scope: 'Namespaced' },
  description: 'A database. Its name is the external name.',
  spec: managedSpec(
    Type.Object({
      owner: Type.Optional(Type.String({ description: 'Name of the role that owns it.' })),
      ownerRef: Type.Optional(reference),
      ownerSelector: Type.Optional(selector),
      encoding: Type.Optional(Type.String({ description: 'Such as UTF8; cannot be changed later.' })),
      template: Type.Optional(Type.String({ description: 'The database it is copied from; only used when it is created.' })),
      connectionLimit: Type.Optional(Type.Integer({ minimum: -1, description: 'Most concurrent connections; -1 is no limit.' })),
    }),
  ),
  status: managedStatus(
    Type.Object({
      owner: Type.Optional(Type.String()),
      encoding: Type.Optional(Type.String()),
      connectionLimit: Type.Optional(Type.Integer()),
    }),
  ),
  printerColumns: managedColumns,
})

export const roleResource = defineResource({
  ...{ group, version, kind: 'Role', plural: 'roles', scope: 'Namespaced' },
  description: 'A role. Its name is the external name.',
  spec: managedSpec(
    Type.Object({
      login: Type.Optional(Type.Boolean({ default: true })),
      createDatabase: Type.Optional(Type.Boolean({ default: false })),
      createRole: Type.Optional(Type.Boolean({ default: false })),
      inherit: Type.Optional(Type.Boolean({ default: true })),
      connectionLimit: Type.Optional(Type.Integer({ minimum: -1, default: -1 })),
      passwordSecretRef: Type.Optional(
        Type.Object(
          { name: Type.String(), key: Type.Optional(Type.String({ default: 'password' })) },
          { description: 'The Secret with its password. Default: one is generated, and published as a connection detail.' },
        ),
      ),
    }),
  ),
  status: managedStatus(
    Type.Object({
      passwordVersion: Type.Optional(Type.String({ description: 'The resourceVersion of the Secret whose password was set.' })),
      passwordGenerated: Type.Optional(Type.Boolean({ description: 'Whether the provider has chosen the password.' })),
    }),
  ),
  printerColumns: managedColumns,
})

export const grantResource = defineResource({
  ...{ group, version, kind: 'Grant', plural: 'grants', scope: 'Namespaced' },
  description: 'Privileges of a role on a database, or on a schema of it. Privileges that the role has besides are left alone.',
  spec: managedSpec(
    Type.Object(
      {
        role: Type.Optional(Type.String()),
        roleRef: Type.Optional(reference),
        roleSelector: Type.Optional(selector),
        database: Type.Optional(Type.String()),
        databaseRef: Type.Optional(reference),
        databaseSelector: Type.Optional(selector),
        schema: Type.Optional(Type.String({ description: 'Default: the privileges are on the database.' })),
        privileges: Type.Array(Type.Enum(['CONNECT', 'CREATE', 'TEMPORARY', 'USAGE']), {
          minItems: 1,
          description: 'Of a database: CONNECT, CREATE and TEMPORARY. Of a schema: CREATE and USAGE.',
        }),
      },
      {
        'x-kubernetes-validations': ['role', 'database', 'schema'].map(field => ({
          rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
          message: `${field} of a Grant is immutable: create another Grant, and delete this one`,
        })),
      },
    ),
  ),
  status: managedStatus(Type.Object({ privileges: Type.Optional(Type.Array(Type.String())) })),
  printerColumns: managedColumns,
})

export const extensionResource = defineResource({
  ...{ group, version, kind: 'Extension', plural: 'extensions', scope: 'Namespaced' },
  description: 'An extension of a database. Its name is the external name.',
  spec: managedSpec(
    Type.Object({
      database: Type.Optional(Type.String()),
      databaseRef: Type.Optional(reference),
      databaseSelector: Type.Optional(selector),
      version: Type.Optional(Type.String({ description: 'Default: what the server has as default, when it is created.' })),
      schema: Type.Optional(Type.String({ description: 'The schema of its objects; only used when it is created.' })),
    }),
  ),
  status: managedStatus(Type.Object({ version: Type.Optional(Type.String()) })),
  printerColumns: managedColumns,
})

export const kinds = [providerConfigResource, databaseResource, roleResource, grantResource, extensionResource] as const

export type BodyOf<R> = R extends Resource<infer Body> ? Body : never
