import { randomBytes } from 'node:crypto'
import type { ExternalRequest, ManagedOptions } from '../../../src/controllers/managed/index.ts'
import { secretResource } from '../../../src/kubernetes/client/index.ts'
import { type Connection, connect, withDetail } from './connection.ts'
import { type BodyOf, roleResource } from './kinds.ts'
import { isOwn, markStatement } from './ownership.ts'
import { identifier, literal } from './sql.ts'

type Body = BodyOf<typeof roleResource>
type Row = { login: boolean; create_database: boolean; create_role: boolean; inherit: boolean; connection_limit: number }

export const roleOptions: ManagedOptions<Body, Connection, Row> = {
  kind: roleResource,
  name: 'postgresql-roles',
  hasDeterministicNames: true,
  creationGraceMs: 1,
  connect: request => connect(request),
  disconnect: connection => connection.end(),
  async observe(connection, request) {
    const { object, externalName = object.metadata.name } = request
    const { rows } = await connection.query<Row & { comment: string | null }>(
      `SELECT rolcanlogin AS login, rolcreatedb AS create_database, rolcreaterole AS create_role, rolinherit AS inherit,
       rolconnlimit AS connection_limit, shobj_description(oid, 'pg_authid') AS comment FROM pg_roles WHERE rolname = $1`,
      [externalName],
    )
    const found = rows[0]
    if (!found || !isOwn('ROLE', externalName, found.comment, object, connection.controlPlane)) return { exists: false }
    const wanted = wantedOf(object)
    const differences = (Object.keys(wanted) as (keyof Row)[]).filter(field => wanted[field] !== found[field])
    // A password cannot be read back: what is compared is the version of the Secret that it came from.
    const password = await passwordOf(request)
    const isNewPassword = password ? password.version !== object.status?.atProvider?.passwordVersion : await isPasswordLost(request)
    const diff = [
      ...differences.map(field => `${field}: ${found[field]} -> ${wanted[field]}`),
      ...(isNewPassword ? ['password'] : []),
    ].join(', ')
    const atProvider = object.status?.atProvider
    return { exists: true, isUpToDate: diff === '', diff, state: found, atProvider, connectionDetails: { username: externalName } }
  },
  async create(connection, request) {
    const { object, externalName = object.metadata.name } = request
    const given = await passwordOf(request)
    const password = given?.text ?? (wantedOf(object).login ? generatePassword() : undefined)
    // Two statements of one query are one transaction.
    await connection.query(
      `CREATE ROLE ${identifier(externalName)} ${clauses(object, password)}; ${markStatement('ROLE', externalName, object, connection.controlPlane)}`,
    )
    return {
      connectionDetails: { username: externalName, ...(password !== undefined && { password }) },
      ...(given
        ? { atProvider: { passwordVersion: given.version } }
        : password !== undefined && { atProvider: { passwordGenerated: true } }),
    }
  },
  async update(connection, request) {
    const { object, externalName = object.metadata.name } = request
    const given = await passwordOf(request)
    const password = given?.text ?? ((await isPasswordLost(request)) ? generatePassword() : undefined)
    await connection.query(`ALTER ROLE ${identifier(externalName)} ${clauses(object, password)}`)
    return {
      ...(password !== undefined && { connectionDetails: { username: externalName, password } }),
      ...(given && { atProvider: { passwordVersion: given.version } }),
    }
  },
  async delete(connection, { object, externalName = object.metadata.name }) {
    await withDetail(connection.query(`DROP ROLE IF EXISTS ${identifier(externalName)}`))
  },
}

const generatePassword = () => randomBytes(24).toString('base64url')

/** Whether the Secret that is to have the generated password does not have it: it was deleted, or named later. Without it no one can log in. */
async function isPasswordLost({ object, client, signal }: ExternalRequest<Body>): Promise<boolean> {
  const { name } = object.spec.writeConnectionSecretToRef ?? {}
  if (name === undefined || object.status?.atProvider?.passwordGenerated !== true) return false
  const secret = await client.resource(secretResource).getOrUndefined(name, { namespace: object.metadata.namespace, signal })
  return secret?.data?.password === undefined
}

function wantedOf({ spec }: { spec: Body['spec'] }): Row {
  const { login = true, createDatabase = false, createRole = false, inherit = true, connectionLimit = -1 } = spec.forProvider
  return { login, create_database: createDatabase, create_role: createRole, inherit, connection_limit: connectionLimit }
}

function clauses(object: { spec: Body['spec'] }, password: string | undefined): string {
  const { login, create_database, create_role, inherit, connection_limit } = wantedOf(object)
  const flag = (isSet: boolean, word: string) => `${isSet ? '' : 'NO'}${word}`
  return [
    ...[flag(login, 'LOGIN'), flag(create_database, 'CREATEDB'), flag(create_role, 'CREATEROLE'), flag(inherit, 'INHERIT')],
    ...[`CONNECTION LIMIT ${connection_limit}`, ...(password === undefined ? [] : [`PASSWORD ${literal(password)}`])],
  ].join(' ')
}

/** The password in the Secret that the user names; undefined if none is named. */
async function passwordOf({ object, client, signal }: ExternalRequest<Body>): Promise<{ text: string; version: string } | undefined> {
  const reference = object.spec.forProvider.passwordSecretRef
  if (!reference) return undefined
  const { namespace } = object.metadata
  const { name, key = 'password' } = reference
  const secret = await client.resource(secretResource).getOrUndefined(name, { namespace, signal })
  const encoded = secret?.data?.[key]
  // Other keys of such a Secret, such as the name, are known to people who must not log in as this role.
  if (secret?.type === 'connection.crossplane.io/v1alpha1' && key !== 'password')
    throw new Error(
      `spec.forProvider.passwordSecretRef refers to key ${key} of Secret ${namespace}/${name}, which has connection details: only its key password can be one`,
    )
  if (!secret || !encoded)
    throw new Error(`spec.forProvider.passwordSecretRef refers to key ${key} of Secret ${namespace}/${name}, which does not exist`)
  return { text: Buffer.from(encoded, 'base64').toString(), version: secret.metadata.resourceVersion }
}
