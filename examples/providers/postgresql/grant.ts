import type pg from 'pg'
import type { ManagedOptions } from '../../../src/controllers/managed/index.ts'
import { connectWithin, opened } from './connection.ts'
import { type BodyOf, databaseResource, grantResource, roleResource } from './kinds.ts'
import { identifier } from './sql.ts'

type Body = BodyOf<typeof grantResource>
type Privilege = Body['spec']['forProvider']['privileges'][number]
type State = { readonly missing: readonly Privilege[] }

const privilegesOf = { database: ['CONNECT', 'CREATE', 'TEMPORARY'], schema: ['CREATE', 'USAGE'] } as const

export const grantOptions: ManagedOptions<Body, pg.Client | undefined, State> = {
  kind: grantResource,
  name: 'postgresql-grants',
  hasDeterministicNames: true,
  creationGraceMs: 1,
  references: [
    { field: 'role', to: roleResource },
    { field: 'database', to: databaseResource },
  ],
  // The privileges on a schema are in the catalog of its database.
  connect: request => connectWithin(request, targetOf(request.object).database),
  disconnect: async connection => await connection?.end(),
  async observe(connection, { object }) {
    if (!connection) return { exists: false }
    const { role, database, schema, privileges } = targetOf(object)
    const query = schema
      ? 'SELECT a.privilege_type FROM pg_namespace n, aclexplode(n.nspacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE n.nspname = $1 AND r.rolname = $2'
      : 'SELECT a.privilege_type FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE d.datname = $1 AND r.rolname = $2'
    const { rows } = await connection.query<{ privilege_type: string }>(query, [schema ?? database, role])
    const granted = new Set(rows.map(row => row.privilege_type))
    const missing = privileges.filter(privilege => !granted.has(privilege))
    const present = privileges.filter(privilege => granted.has(privilege))
    return {
      ...{ exists: present.length > 0, isUpToDate: missing.length === 0, diff: `missing: ${missing.join(', ')}`, state: { missing } },
      atProvider: { privileges: present },
    }
  },
  create: (connection, { object }) => grant(opened(connection), object, targetOf(object).privileges),
  update: (connection, { object }, { state }) => grant(opened(connection), object, state?.missing ?? []),
  async delete(connection, { object }) {
    const { role, privileges } = targetOf(object)
    await opened(connection).query(`REVOKE ${privileges.join(', ')} ON ${textOf(object)} FROM ${identifier(role)}`)
  },
}

async function grant(connection: pg.Client, object: { spec: Body['spec'] }, privileges: readonly Privilege[]): Promise<undefined> {
  if (privileges.length === 0) return
  await connection.query(`GRANT ${privileges.join(', ')} ON ${textOf(object)} TO ${identifier(targetOf(object).role)}`)
}

function textOf(object: { spec: Body['spec'] }): string {
  const { database, schema } = targetOf(object)
  return schema ? `SCHEMA ${identifier(schema)}` : `DATABASE ${identifier(database)}`
}

/** @throws {Error} naming the field that is missing, or the privilege that the target does not have. */
function targetOf({ spec }: { spec: Body['spec'] }): {
  role: string
  database: string
  schema: string | undefined
  privileges: readonly Privilege[]
} {
  const { role, database, schema, privileges } = spec.forProvider
  if (!role) throw new Error('spec.forProvider has no role: set role, roleRef or roleSelector')
  if (!database) throw new Error('spec.forProvider has no database: set database, databaseRef or databaseSelector')
  const kind = schema ? 'schema' : 'database'
  const wrong = privileges.filter(privilege => !(privilegesOf[kind] as readonly string[]).includes(privilege))
  if (wrong.length > 0)
    throw new Error(`spec.forProvider.privileges has ${wrong.join(', ')}: a ${kind} has ${privilegesOf[kind].join(', ')}`)
  return { role, database, schema, privileges }
}
