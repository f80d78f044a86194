import type { ManagedOptions } from '../../../src/controllers/managed/index.ts'
import { type Connection, connectWithin, opened } from './connection.ts'
import { type BodyOf, databaseResource, extensionResource } from './kinds.ts'
import { identifier, literal } from './sql.ts'

type Body = BodyOf<typeof extensionResource>

export const extensionOptions: ManagedOptions<Body, Connection | undefined> = {
  kind: extensionResource,
  name: 'postgresql-extensions',
  hasDeterministicNames: true,
  creationGraceMs: 1,
  references: [{ field: 'database', to: databaseResource }],
  connect: request => connectWithin(request, databaseOf(request.object)),
  disconnect: async connection => await connection?.end(),
  async observe(connection, { object, externalName = object.metadata.name }) {
    if (!connection) return { exists: false }
    const { rows } = await connection.query<{ extversion: string }>('SELECT extversion FROM pg_extension WHERE extname = $1', [
      externalName,
    ])
    const found = rows[0]
    if (!found) return { exists: false }
    const { version = found.extversion } = object.spec.forProvider
    const diff = version === found.extversion ? '' : `version: ${found.extversion} -> ${version}`
    return { exists: true, isUpToDate: diff === '', diff, atProvider: { version: found.extversion } }
  },
  async create(connection, { object, externalName = object.metadata.name }) {
    const { version, schema } = object.spec.forProvider
    const options = [...(schema ? [`SCHEMA ${identifier(schema)}`] : []), ...(version ? [`VERSION ${literal(version)}`] : [])]
    await opened(connection).query(`CREATE EXTENSION IF NOT EXISTS ${identifier(externalName)} ${options.join(' ')}`)
  },
  async update(connection, { object, externalName = object.metadata.name }) {
    const { version } = object.spec.forProvider
    if (version) await opened(connection).query(`ALTER EXTENSION ${identifier(externalName)} UPDATE TO ${literal(version)}`)
  },
  async delete(connection, { object, externalName = object.metadata.name }) {
    await opened(connection).query(`DROP EXTENSION IF EXISTS ${identifier(externalName)}`)
  },
}

/** @throws {Error} if no database is named. */
function databaseOf({ spec }: { spec: Body['spec'] }): string {
  if (!spec.forProvider.database) throw new Error('spec.forProvider has no database: set database, databaseRef or databaseSelector')
  return spec.forProvider.database
}
