import type pg from 'pg'
import type { ManagedOptions } from '../../../src/controllers/managed/index.ts'
import { connect, hasCode } from './connection.ts'
import { type BodyOf, databaseResource, roleResource } from './kinds.ts'
import { identifier, literal } from './sql.ts'

type Row = { owner: string; encoding: string; connection_limit: number }

const duplicateDatabase = '42P04'

export const databaseOptions: ManagedOptions<BodyOf<typeof databaseResource>, pg.Client, Row> = {
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
      `SELECT r.rolname AS owner, pg_encoding_to_char(d.encoding) AS encoding, d.datconnlimit AS connection_limit
       FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE d.datname = $1`,
      [externalName],
    )
    const found = rows[0]
    if (!found) return { exists: false }
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
    try {
      await connection.query(`CREATE DATABASE ${identifier(externalName)} ${options.join(' ')}`)
    } catch (error) {
      // An earlier call that was given up made it.
      if (!hasCode(error, duplicateDatabase)) throw error
    }
    return { connectionDetails: { database: externalName } }
  },
  async update(connection, { object, externalName = object.metadata.name }) {
    const { owner, connectionLimit } = object.spec.forProvider
    if (owner !== undefined) await connection.query(`ALTER DATABASE ${identifier(externalName)} OWNER TO ${identifier(owner)}`)
    if (connectionLimit !== undefined)
      await connection.query(`ALTER DATABASE ${identifier(externalName)} CONNECTION LIMIT ${connectionLimit}`)
  },
  async delete(connection, { object, externalName = object.metadata.name }) {
    await connection.query(`DROP DATABASE IF EXISTS ${identifier(externalName)}`)
  },
}
