import type { ManagedOptions } from '../../../src/controllers/managed/index.ts'
import { type Connection, connectWithin, opened } from './connection.ts'
import { type BodyOf, databaseResource, grantResource, roleResource } from './kinds.ts'
import { identifier } from './sql.ts'

type Body = BodyOf<typeof grantResource>
type Privilege = Body['spec']['forProvider']['privileges'][number]
type State = { readonly missing: readonly Privilege[]; readonly surplus: readonly Privilege[] }

const privilegesOf = { database: ['CONNECT', 'CREATE', 'TEMPORARY'], schema: ['CREATE', 'USAGE'] } as const

export const grantOptions: ManagedOptions<Body, Connection | undefined, State> = {
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
    const own = ownOf(object).filter(privilege => granted.has(privilege))
    const surplus = own.filter(privilege => !privileges.includes(privilege))
    const diff = [...missing.map(privilege => `missing: ${privilege}`), ...surplus.map(privilege => `no longer wanted: ${privilege}`)].join(
      ', ',
    )
    return {
      ...{ exists: own.length > 0, isUpToDate: diff === '', diff, state: { missing, surplus } },
      atProvider: { privileges: own },
    }
  },
  create: (connection, { object }) => grant(opened(connection), object, targetOf(object).privileges),
  async update(connection, { object }, { state }) {
    await revoke(opened(connection), object, state?.surplus ?? [])
    await grant(opened(connection), object, state?.missing ?? [])
  },
  delete: (connection, { object }) => revoke(opened(connection), object, ownOf(object)),
}

async function grant(connection: Connection, object: { spec: Body['spec'] }, privileges: readonly Privilege[]): Promise<undefined> {
  if (privileges.length === 0) return
  await connection.query(`GRANT ${privileges.join(', ')} ON ${textOf(object)} TO ${identifier(targetOf(object).role)}`)
}

async function revoke(connection: Connection, object: { spec: Body['spec'] }, privileges: readonly Privilege[]): Promise<void> {
  if (privileges.length === 0) return
  await connection.query(`REVOKE ${privileges.join(', ')} ON ${textOf(object)} FROM ${identifier(targetOf(object).role)}`)
}

/** The privileges that the object wants, and those that it wanted before: privileges that the role has besides are left alone. */
function ownOf(object: { spec: Body['spec']; status?: Body['status'] }): Privilege[] {
  return [...new Set([...targetOf(object).privileges, ...((object.status?.atProvider?.privileges ?? []) as Privilege[])])]
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
