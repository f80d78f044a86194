/** The provider of examples/providers/postgresql against a real PostgreSQL. */
import { deepEqual, equal, rejects, throws } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { parseAllDocuments } from 'yaml'
import { settingsOf } from '../examples/providers/postgresql/connection.ts'
import { kinds } from '../examples/providers/postgresql/kinds.ts'
import { postgresqlControllers } from '../examples/providers/postgresql/provider.ts'
import { identifier, literal } from '../examples/providers/postgresql/sql.ts'
import type { ManagedBody } from '../src/controllers/managed/index.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { findCondition, type KubeObject, type Resource } from '../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../src/kubernetes/testing/index.ts'
import { eventually } from './support/eventually.ts'
import { Postgres, postgresMissing } from './support/postgres.ts'

const skip = postgresMissing ?? false
const namespace = 'default'
let postgres: Postgres
let api: TestServer
let manager: Manager
let admin: pg.Client

before(async () => {
  if (skip) return
  postgres = await Postgres.start()
  api = await startTestServer({ kinds })
  admin = new pg.Client({ connectionString: postgres.url })
  await admin.connect()
  manager = new Manager({ client: api.client, log: silentLog })
  for (const controller of postgresqlControllers({ pollIntervalMs: 500, deletionCheckMs: 20 })) manager.add(controller)
  await manager.start()
})

after(async () => {
  if (skip) return
  await manager.stop({ graceMs: 2_000 })
  await admin.end()
  await api.close()
  await postgres.stop()
})

const [, databaseResource, roleResource, grantResource, extensionResource] = kinds as unknown as Resource<ManagedBody>[]
type Kind = Resource<ManagedBody> | undefined

const handle = (kind: Kind) => api.client.resource(kind as Resource<ManagedBody>)
const get = async (kind: Kind, name: string): Promise<KubeObject<ManagedBody>> => await handle(kind).get(name, { namespace })
const conditionOf = ({ status }: KubeObject<ManagedBody>, type: string) => findCondition(status?.conditions, type)

const isReady = (kind: Kind, name: string) =>
  eventually(
    () => get(kind, name),
    object => conditionOf(object, 'Ready')?.status === 'True' && conditionOf(object, 'Synced')?.status === 'True',
  )

const create = (kind: Kind, name: string, spec: object, annotations?: Record<string, string>) =>
  handle(kind).create({ metadata: { name, namespace, ...(annotations && { annotations }) }, spec: spec as never })

test('the objects of deploy/example.yaml become ready, with the password of the role in its Secret', { skip }, async () => {
  const text = readFileSync('examples/providers/postgresql/deploy/example.yaml', 'utf8').replace(/postgresql:\/\/[^"]*/, postgres.url)
  for (const document of parseAllDocuments(text)) {
    const object = document.toJSON() as KubeObject
    await api.client.resource(await api.client.discover(object.apiVersion, object.kind)).create(object)
  }
  await isReady(roleResource, 'shop')
  await isReady(databaseResource, 'shop')
  await isReady(grantResource, 'shop-temporary')
  await isReady(extensionResource, 'pg-trgm')
  const { rows } = await admin.query(
    "SELECT r.rolname, d.datconnlimit FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba WHERE datname = 'shop'",
  )
  deepEqual(rows, [{ rolname: 'shop', datconnlimit: 20 }])
  const { data = {} } = await api.client.resource(secretResource).get('shop-login', { namespace })
  const url = new URL(postgres.url)
  url.username = Buffer.from(data.username ?? '', 'base64').toString()
  url.password = Buffer.from(data.password ?? '', 'base64').toString()
  url.pathname = '/shop'
  const login = new pg.Client({ connectionString: url.href })
  await login.connect()
  const { rows: extensions } = await login.query("SELECT extname FROM pg_extension WHERE extname = 'pg_trgm'")
  deepEqual(extensions, [{ extname: 'pg_trgm' }])
  await login.end()
})

test('what someone changes in the database is corrected', { skip }, async () => {
  await admin.query('ALTER DATABASE shop CONNECTION LIMIT 3')
  await admin.query('REVOKE TEMPORARY ON DATABASE shop FROM shop')
  await eventually(async () => {
    const { rows } = await admin.query(
      "SELECT d.datconnlimit, a.privilege_type FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE d.datname = 'shop' AND r.rolname = 'shop' AND a.privilege_type = 'TEMPORARY'",
    )
    return rows[0]?.datconnlimit === 20
  }, 'limit and privilege to be as wanted')
})

test('a password from a Secret is set, and set again when the Secret changes', { skip }, async () => {
  const secrets = api.client.resource(secretResource)
  await secrets.create({ metadata: { name: 'given', namespace }, stringData: { password: "it's \\ first" } })
  await create(roleResource, 'given', { forProvider: { passwordSecretRef: { name: 'given' } } })
  await isReady(roleResource, 'given')
  const canLogIn = async (password: string) => {
    const { hostname, port } = new URL(postgres.url)
    const login = new pg.Client({ host: hostname, port: Number(port), user: 'given', password, database: 'postgres' })
    try {
      await login.connect()
      return true
    } catch {
      return false
    } finally {
      await login.end().catch(() => undefined)
    }
  }
  equal(await canLogIn("it's \\ first"), true)
  await secrets.patch('given', { stringData: { password: 'second' } }, { type: 'merge', namespace })
  await eventually(() => canLogIn('second'), 'the second password')
})

test('a field that PostgreSQL cannot change, and a privilege that the target lacks, are errors that name them', { skip }, async () => {
  await handle(databaseResource).patch('shop', { spec: { forProvider: { encoding: 'LATIN1' } } }, { type: 'merge', namespace })
  await create(grantResource, 'wrong', { forProvider: { role: 'shop', database: 'shop', privileges: ['USAGE'] } })
  const messageOf = async (kind: Kind, name: string) => conditionOf(await get(kind, name), 'Synced')?.message ?? ''
  await eventually(async () => /encoding is LATIN1, the database has UTF8/.test(await messageOf(databaseResource, 'shop')), 'the encoding')
  await eventually(
    async () => /privileges has USAGE: a database has CONNECT, CREATE, TEMPORARY/.test(await messageOf(grantResource, 'wrong')),
    'USAGE',
  )
  await handle(databaseResource).patch('shop', { spec: { forProvider: { encoding: null } } } as object, { type: 'merge', namespace })
  await isReady(databaseResource, 'shop')
})

test('a role or a database that something else made is not taken over; its comment transfers it', { skip }, async () => {
  await admin.query('CREATE DATABASE theirs')
  const external = (name: string) => ({ 'crossplane.io/external-name': name })
  await create(databaseResource, 'taken', { forProvider: {} }, external('theirs'))
  await create(roleResource, 'root', { forProvider: { createRole: true } }, external('postgres'))
  const messageOf = async (kind: Kind, name: string) => conditionOf(await get(kind, name), 'Synced')?.message ?? ''
  await eventually(
    async () => /role postgres exists and does not belong to this object/.test(await messageOf(roleResource, 'root')),
    'postgres',
  )
  const hint = /an administrator can hand it over: (COMMENT ON DATABASE "theirs" IS 'Oarlock: default\/taken of control plane [\w-]+')/
  await eventually(async () => hint.test(await messageOf(databaseResource, 'taken')), 'the hint')
  await handle(roleResource).delete('root', { namespace })
  await eventually(async () => (await handle(roleResource).getOrUndefined('root', { namespace })) === undefined, 'the object to be gone')
  equal((await admin.query("SELECT 1 FROM pg_roles WHERE rolname = 'postgres'")).rowCount, 1)
  await admin.query(hint.exec(await messageOf(databaseResource, 'taken'))?.[1] ?? '')
  await isReady(databaseResource, 'taken')
  await handle(databaseResource).delete('taken', { namespace })
  await eventually(
    async () => (await handle(databaseResource).getOrUndefined('taken', { namespace })) === undefined,
    'the database to be gone',
  )
  equal((await admin.query("SELECT 1 FROM pg_database WHERE datname = 'theirs'")).rowCount, 0)
})

test('what belongs to an object of another control plane, with the same name, is neither taken over nor dropped', { skip }, async () => {
  await admin.query('CREATE DATABASE shared')
  await admin.query("COMMENT ON DATABASE shared IS 'Oarlock: default/shared of control plane 0000-other'")
  await create(databaseResource, 'shared', { forProvider: { connectionLimit: 3 } })
  await eventually(
    async () => conditionOf(await get(databaseResource, 'shared'), 'Synced')?.message ?? '',
    message =>
      /database shared exists and belongs to default\/shared of control plane 0000-other: choose another external name/.test(message),
  )
  await handle(databaseResource).delete('shared', { namespace })
  await eventually(
    async () => (await handle(databaseResource).getOrUndefined('shared', { namespace })) === undefined,
    'the object to be gone',
  )
  const { rows } = await admin.query("SELECT datconnlimit FROM pg_database WHERE datname = 'shared'")
  deepEqual(rows, [{ datconnlimit: -1 }])
  await admin.query('DROP DATABASE shared')
})

test('a privilege that a Grant does not want any more is revoked, and all that it granted when it is deleted', { skip }, async () => {
  await admin.query('CREATE ROLE reader; GRANT TEMPORARY ON DATABASE shop TO reader')
  const privileges = async () => {
    const { rows } = await admin.query(
      "SELECT a.privilege_type AS name FROM pg_database d, aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE d.datname = 'shop' AND r.rolname = 'reader' ORDER BY 1",
    )
    return rows.map(({ name }) => name).join()
  }
  await create(grantResource, 'reader', { forProvider: { role: 'reader', database: 'shop', privileges: ['CONNECT', 'CREATE'] } })
  await isReady(grantResource, 'reader')
  equal(await privileges(), 'CONNECT,CREATE,TEMPORARY')
  const patch = (forProvider: object) =>
    handle(grantResource).patch('reader', { spec: { forProvider } } as object, { type: 'merge', namespace })
  await patch({ privileges: ['CONNECT'] })
  await eventually(privileges, granted => granted === 'CONNECT,TEMPORARY')
  await rejects(patch({ role: 'shop' }), /role of a Grant is immutable: create another Grant/)
  await handle(grantResource).delete('reader', { namespace })
  await eventually(privileges, granted => granted === 'TEMPORARY')
  await admin.query('REVOKE ALL ON DATABASE shop FROM reader; DROP ROLE reader')
})

test('a generated password whose Secret was deleted is replaced by a new one', { skip }, async () => {
  await create(roleResource, 'forgetful', { forProvider: {}, writeConnectionSecretToRef: { name: 'forgetful-login' } } as never)
  await isReady(roleResource, 'forgetful')
  const secrets = api.client.resource(secretResource)
  const passwordOf = async () => (await secrets.getOrUndefined('forgetful-login', { namespace }))?.data?.password
  const first = await eventually(passwordOf, 'the password')
  await secrets.delete('forgetful-login', { namespace })
  const second = await eventually(async () => {
    const password = await passwordOf()
    return password !== first && password
  }, 'the new password')
  const { hostname, port } = new URL(postgres.url)
  const password = Buffer.from(String(second), 'base64').toString()
  const login = new pg.Client({ host: hostname, port: Number(port), user: 'forgetful', password, database: 'postgres' })
  await login.connect()
  await login.end()
})

test('a URL that names a file, or a directory of a socket, is rejected', () => {
  for (const [url, message] of [
    ['postgresql://a:b@host/db?sslrootcert=/etc/hostname', /has the parameter sslrootcert; only sslmode is allowed/],
    ['postgresql://a:b@host/db?host=/var/run/postgresql', /has the parameter host/],
    ['postgresql://a:b@%2Fvar%2Frun/db', /must be like postgresql:/],
    ['/var/run/postgresql', /must be like postgresql:/],
    ['postgresql://a:b@host/db?sslmode=prefer', /sslmode of the URL/],
  ] as const)
    throws(() => settingsOf(url, undefined), message)
  deepEqual(settingsOf('postgresql://a%40b:p%3A@db.example:6000/shop?sslmode=require', undefined), {
    ...{ host: 'db.example', port: 6000, user: 'a@b', password: 'p:', database: 'shop', ssl: { rejectUnauthorized: false } },
  })
})

test('a missing ProviderConfig is named', { skip }, async () => {
  await create(roleResource, 'lost', { forProvider: {}, providerConfigRef: { name: 'nowhere' } })
  await eventually(
    async () =>
      /connect failed: ProviderConfig default\/nowhere does not exist/.test(
        conditionOf(await get(roleResource, 'lost'), 'Synced')?.message ?? '',
      ),
    'the message',
  )
})

test('deleted objects are removed from the server, in any order that PostgreSQL permits', { skip }, async () => {
  await handle(roleResource).delete('shop', { namespace })
  // The role owns a database: it waits, and the condition names the reason.
  await eventually(
    async () =>
      /cannot be dropped because some objects depend on it: owner of database shop/.test(
        conditionOf(await get(roleResource, 'shop'), 'Synced')?.message ?? '',
      ),
    'the reason',
  )
  for (const [kind, name] of [
    [grantResource, 'shop-temporary'],
    [extensionResource, 'pg-trgm'],
    [databaseResource, 'shop'],
  ] as const)
    await handle(kind).delete(name, { namespace })
  for (const [kind, name] of [
    [databaseResource, 'shop'],
    [roleResource, 'shop'],
  ] as const)
    await eventually(async () => (await handle(kind).getOrUndefined(name, { namespace })) === undefined, `${name} to be gone`, 60_000)
  const { rows } = await admin.query("SELECT rolname FROM pg_roles WHERE rolname = 'shop'")
  deepEqual(rows, [])
})

test('names and literals are quoted', () => {
  equal(identifier('a"b; DROP DATABASE x'), '"a""b; DROP DATABASE x"')
  equal(literal("it's"), "'it''s'")
  equal(literal('a\\'), "E'a\\\\'")
  for (const name of ['', 'a\0', 'x'.repeat(64)]) throws(() => identifier(name), RangeError)
})
