import type { ManagedOptions } from '../../../src/controllers/managed/index.ts'
import { type Connection, connect, withDetail } from './connection.ts'
import { type BodyOf, databaseResource, roleResource } from './kinds.ts'
import { isOwn, markStatement } from './ownership.ts'
import { identifier, literal } from './sql.ts'

type Row = { owner: string; encoding: string; connection_limit: number; comment: string | null }

export const databaseOptions: ManagedOptions<BodyOf<typeof databaseResource>, Connection, Row> = {
  kind: databaseResource,
  name: 'postgresql-databases',
  hasDeterministicNames: true,
  // The catalog shows what was created immediately.
  creationGraceMs: 1,
  references: [{ field: 'owner', to: roleResource }],
  connect: request => connect(request),
  disconnect: connection => connection.end(),
  async observe(connection, { object, externalName = object.metadata.name }) {
    const { rows } = await connection.query<Row>(
      `SELECT r.rolname AS owner, pg_encoding_to_char(d.encoding) AS encoding, d.datconnlimit AS connection_limit,
       shobj_description(d.oid, 'pg_database') AS comment
       FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE d.datname = $1`,
      [externalName],
    )
    const found = rows[0]
    if (!found || !isOwn('DATABASE', externalName, found.comment, object, connection.controlPlane)) return { exists: false }
    const { owner = found.owner, encoding = found.encoding, connectionLimit = found.connection_limit } = object.spec.forProvider
    if (encoding.toUpperCase() !== found.encoding) {
      throw new Error(`spec.forProvider.encoding is ${encoding}, the database has ${found.encoding}: PostgreSQL cannot change it`)
    }
    const differences = [
      ...(owner === found.owner ? [] : [`owner: ${found.owner} -> ${owner}`]),
      ...(connectionLimit === found.connection_limit ? [] : [`connectionLimit: ${found.connection_limit} -> ${connectionLimit}`]),
    ]
    return {
      ...{ exists: true, isUpToDate: differences.length === 0, diff: differences.join(', '), state: found },
      atProvider: { owner: found.owner, encoding: found.encoding, connectionLimit: found.connection_limit },
    }
  },
  async create(connection, { object, externalName = object.metadata.name }) {
    const { owner, encoding, template, connectionLimit } = object.spec.forProvider
    const options = [
      ...(owner === undefined ? [] : [`OWNER ${identifier(owner)}`]),
      ...(encoding === undefined ? [] : [`ENCODING ${literal(encoding)}`]),
      ...(template === undefined ? [] : [`TEMPLATE ${identifier(template)}`]),
      ...(connectionLimit === undefined ? [] : [`CONNECTION LIMIT ${connectionLimit}`]),
    ]
    // Not in one transaction, which PostgreSQL does not permit: if only the first has its effect, the next observation names the statement that is missing.
    await connection.query(`CREATE DATABASE ${identifier(externalName)} ${options.join(' ')}`)
    await connection.query(markStatement('DATABASE', externalName, object, connection.controlPlane))
    return { connectionDetails: { database: externalName } }
  },
  async update(connection, { object, externalName = object.metadata.name }) {
    const { owner, connectionLimit } = object.spec.forProvider
    if (owner !== undefined) await connection.query(`ALTER DATABASE ${identifier(externalName)} OWNER TO ${identifier(owner)}`)
    if (connectionLimit !== undefined)
      await connection.query(`ALTER DATABASE ${identifier(externalName)} CONNECTION LIMIT ${connectionLimit}`)
  },
  async delete(connection, { object, externalName = object.metadata.name }) {
    await withDetail(connection.query(`DROP DATABASE IF EXISTS ${identifier(externalName)}`))
  },
}
