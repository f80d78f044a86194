/** A connection to the server that the resource's ProviderConfig names. */
import pg from 'pg'
import type { ExternalRequest } from '../../../src/controllers/managed/index.ts'
import { type Client, namespaceResource, secretResource } from '../../../src/kubernetes/client/index.ts'
import { providerConfigResource } from './kinds.ts'

type WithConfig = { spec: { providerConfigRef?: { name: string } | undefined } }

/** Short: while a server does not answer, each of its resources uses one of the reconciles that all share. */
const connectTimeoutMs = 5_000

/** `controlPlane` tells the objects of one API server from those of another one, which may have the same names. */
export class Connection extends pg.Client {
  readonly controlPlane: string

  constructor(config: pg.ClientConfig, controlPlane: string) {
    super(config)
    this.controlPlane = controlPlane
  }
}

const controlPlanes = new Map<string, string>()

/** The UID of the namespace kube-system, which every API server has and keeps. */
async function controlPlaneOf(client: Client, signal: AbortSignal): Promise<string> {
  let uid = controlPlanes.get(client.server)
  if (uid === undefined) {
    uid = (await client.resource(namespaceResource).get('kube-system', { signal })).metadata.uid
    controlPlanes.set(client.server, uid)
  }
  return uid
}

/** Connects to a database of the server; default: the one in the URL. @throws {Error} naming the ProviderConfig or the Secret that is missing. */
export async function connect({ object, client, signal }: ExternalRequest<WithConfig>, database?: string): Promise<Connection> {
  const { namespace } = object.metadata
  const name = object.spec.providerConfigRef?.name ?? 'default'
  const config = await client.resource(providerConfigResource).getOrUndefined(name, { namespace, signal })
  if (!config) throw new Error(`ProviderConfig ${namespace}/${name} does not exist: create it, also for resources that are being deleted`)
  const { name: secretName, key = 'url' } = config.spec.urlSecretRef
  const secret = await client.resource(secretResource).getOrUndefined(secretName, { namespace, signal })
  const encoded = secret?.data?.[key]
  if (!encoded) throw new Error(`ProviderConfig ${name} refers to key ${key} of Secret ${namespace}/${secretName}, which does not exist`)
  const ca = secret.data?.['ca.crt']
  const settings = {
    ...settingsOf(Buffer.from(encoded, 'base64').toString(), ca && Buffer.from(ca, 'base64').toString()),
    ...(database !== undefined && { database }),
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: 'oarlock-provider-postgresql',
  }
  const connection = new Connection(settings, await controlPlaneOf(client, signal))
  // Without a listener a connection that breaks while idle would end the process.
  connection.on('error', () => undefined)
  await connection.connect()
  // A statement that is given up is canceled by the end of its session.
  signal.addEventListener('abort', () => void connection.end().catch(() => undefined), { once: true })
  return connection
}

/**
 * Settings from the URL of a user: no parameter that names a file, which this process would read, and no directory of a socket. `ca` is a certificate in PEM.
 * @throws {Error} naming what is not allowed, never quoting the URL.
 */
export function settingsOf(text: string, ca: string | undefined): pg.ClientConfig {
  const url = URL.parse(text)
  const isPostgres = url?.protocol === 'postgresql:' || url?.protocol === 'postgres:'
  if (!url || !isPostgres || url.hostname === '' || /%|\//.test(url.hostname))
    throw new Error('the URL in the Secret must be like postgresql://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full')
  const { sslmode = ca === undefined ? 'disable' : 'verify-full', ...others } = Object.fromEntries(url.searchParams)
  const [other] = Object.keys(others)
  if (other !== undefined)
    throw new Error(
      `the URL in the Secret has the parameter ${other}; only sslmode is allowed, and a certificate authority in the key ca.crt`,
    )
  if (!['disable', 'require', 'verify-full'].includes(sslmode))
    throw new Error('sslmode of the URL in the Secret must be disable, require or verify-full')
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || 'postgres',
    ssl: sslmode === 'disable' ? false : { rejectUnauthorized: sslmode === 'verify-full', ...(ca !== undefined && { ca }) },
  }
}

/** With what PostgreSQL adds to its message, such as which objects depend on a role. */
export async function withDetail<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.detail) error.message = `${error.message}: ${error.detail.replaceAll('\n', ', ')}`
    throw error
  }
}

/** Whether the server rejected a statement with this SQLSTATE. */
export const hasCode = (error: unknown, code: string): boolean => error instanceof pg.DatabaseError && error.code === code

const noSuchDatabase = '3D000'

/** For what is in a database: undefined if the resource is deleted and its database is gone already, and everything in it. */
export async function connectWithin(request: ExternalRequest<WithConfig>, database: string): Promise<Connection | undefined> {
  try {
    return await connect(request, database)
  } catch (error) {
    if (request.object.metadata.deletionTimestamp && hasCode(error, noSuchDatabase)) return undefined
    throw error
  }
}

/** The connection of a call that is only made for what exists. */
export function opened(connection: Connection | undefined): Connection {
  if (!connection) throw new TypeError('nothing is changed in a database that is gone')
  return connection
}
