import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { nameErrors } from '../../kubernetes/object/index.ts'
import { HttpError } from '../http/index.ts'
import type { LockInfo } from './lock-holder.ts'

const runResources = [
  'state',
  'incomplete',
  'inventory',
  'pulumi',
  'pulumi-version',
  'refused-pulumi',
  'refused-journal',
  'lock',
  'unlock',
  'diff',
  'configuration',
  'encrypt',
  'decrypt',
  'inputs',
  'outputs',
] as const
export type RunResource = (typeof runResources)[number] | 'plan' | 'journal' | 'complete'

/** A worker's path of one Run. */
export type RunTarget = {
  kind: 'run'
  namespace: string
  stack: string
  runName: string
  epoch: number
  sequence: number | undefined
  resource: RunResource
  /** Digest of the plan; empty for other resources. */
  digest: string
  /** With `journal` and `complete`: the number of the update in the Run. With `pulumi`: that of the update whose checkpoint it is. Otherwise 0. */
  update: number
  /** With `outputs`: the other Stack whose outputs they are; empty for those of the Run's own, and for other resources. */
  outputsOf: string
  /** Version of the Pulumi CLI, for messages. */
  cliVersion: string
}

/** A path for users besides the Terraform backend. */
export type QueryTarget = {
  kind: 'query'
  namespace: string
  stack: string
  resource: 'accept' | 'check' | 'decrypt' | 'lock' | 'token' | 'fence' | 'versions' | 'orphans' | 'plan' | 'diff' | 'data'
  number: number | undefined
  /** Digest of the plan; empty for other resources. */
  digest: string
  /** With `diff`: the Run whose plan it is. */
  runName?: string
  /** With `fence`: the epoch of the last Run, and whether a Run may hold the lock. */
  lastEpoch?: number | undefined
  force?: boolean
  /** With `token`: how long the token before stays valid. */
  graceSeconds?: number | undefined
  /** With `data`: the UID of the Stack, so that the data of a new Stack of the same name is never deleted. */
  uid?: string | undefined
}

/** The Terraform backend. */
export type BackendTarget = {
  kind: 'backend'
  namespace: string
  stack: string
  lockId: string | undefined
  stateKind: 'terraform' | 'pulumi'
}

export type StateTarget = BackendTarget | RunTarget | QueryTarget

/** Parses path and headers. @throws {HttpError} 400 or 404. */
export function parseTarget(req: IncomingMessage): StateTarget {
  const noPath = () => new HttpError(404, 'NotFound', 'no such path; state is served at /state/<namespace>/<stack>')
  if (!URL.canParse(req.url ?? '', 'http://x')) throw noPath()
  const url = new URL(req.url ?? '', 'http://x')
  let parts: string[]
  try {
    parts = url.pathname.split('/').slice(1).map(decodeURIComponent)
  } catch {
    throw new HttpError(400, 'BadRequest', 'the path is not valid percent-encoding')
  }
  const [root, namespace = '', stack = '', section, ...rest] = parts
  if (root !== 'state') throw noPath()
  checkName('namespace', namespace, 'dns1123Label')
  checkName('stack', stack, 'dns1123Subdomain')
  switch (section) {
    case undefined: {
      // Terraform adds its ID to the address, which may have a query already.
      const lockId = url.searchParams.get('ID') ?? undefined
      if (lockId !== undefined && (lockId === '' || lockId.length > 256))
        throw new HttpError(400, 'BadRequest', 'ID must have 1 to 256 characters')
      const stateKind = url.searchParams.get('kind') ?? 'terraform'
      if (stateKind !== 'terraform' && stateKind !== 'pulumi')
        throw new HttpError(400, 'BadRequest', `kind must be terraform or pulumi, got ${JSON.stringify(stateKind.slice(0, 100))}`)
      return { kind: 'backend', namespace, stack, lockId, stateKind }
    }
    case 'accept':
    case 'check':
    case 'decrypt':
    case 'lock':
    case 'token':
    case 'fence':
    case 'data':
    case 'versions':
    case 'orphans': {
      if (rest.length > 1 || (section !== 'versions' && section !== 'orphans' && rest.length > 0)) throw noPath()
      const number = rest[0] === undefined ? undefined : parseWholeNumber('the number', rest[0])
      const parameter = (name: string) => {
        const text = url.searchParams.get(name)
        return text === null ? undefined : parseWholeNumber(name, text)
      }
      return {
        ...{ kind: 'query', namespace, stack, resource: section, number, digest: '', uid: url.searchParams.get('uid') ?? undefined },
        ...{ lastEpoch: parameter('lastEpoch'), force: url.searchParams.get('force') === 'true', graceSeconds: parameter('graceSeconds') },
      }
    }
    case 'plan': {
      const [digest, ...more] = rest
      if (digest === undefined || more.length > 0) throw noPath()
      checkDigest(digest)
      return { kind: 'query', namespace, stack, resource: 'plan', number: undefined, digest }
    }
    case 'diff': {
      const [runName = '', ...more] = rest
      if (more.length > 0) throw noPath()
      checkName('run', runName, 'dns1123Subdomain')
      return { kind: 'query', namespace, stack, resource: 'diff', number: undefined, digest: '', runName }
    }
    case 'run': {
      const [runName = '', ...path] = rest
      checkName('run', runName, 'dns1123Subdomain')
      const target = parseRunPath(path)
      if (target === undefined) throw noPath()
      const {
        'oarlock-epoch': epoch,
        'oarlock-sequence': sequence,
        'oarlock-update': update,
        'oarlock-pulumi-version': cliVersion = '',
      } = req.headers
      // What a message shows is the worker's.
      if (typeof cliVersion !== 'string' || !/^[\w.+-]{0,64}$/.test(cliVersion))
        throw new HttpError(400, 'BadRequest', 'the header Oarlock-Pulumi-Version must have at most 64 characters of A-Z a-z 0-9 . _ + -')
      return {
        ...{ kind: 'run', namespace, stack, runName, digest: '', outputsOf: '', cliVersion },
        update: update === undefined ? 0 : parseWholeNumber('the header Oarlock-Update', update),
        ...target,
        epoch: parseWholeNumber('the header Oarlock-Epoch', epoch),
        sequence: sequence === undefined ? undefined : parseWholeNumber('the header Oarlock-Sequence', sequence),
      }
    }
  }
  throw noPath()
}

/** The password of Basic authentication, or the Bearer token of a request that the server did not authenticate. */
export function parsePassword(req: IncomingMessage, isAuthenticated: boolean): string | undefined {
  const [scheme = '', value = ''] = (req.headers.authorization ?? '').split(' ', 2)
  if (scheme.toLowerCase() === 'bearer') return isAuthenticated ? undefined : value
  if (scheme.toLowerCase() !== 'basic') return undefined
  const pair = Buffer.from(value, 'base64').toString()
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined
}

/** @throws {HttpError} 400 unless the body is a JSON object with the digest `md5`, if one is passed. */
export function checkState(bytes: Buffer, md5: string | string[] | undefined): void {
  if (typeof md5 === 'string' && createHash('md5').update(bytes).digest('base64') !== md5) {
    throw new HttpError(400, 'BadDigest', 'the body does not match Content-MD5; it was corrupted in transit')
  }
  // Only both ends are checked: parsing 64 MiB would block every other request for a second.
  const text = bytes.subarray(0, 64).toString('latin1').trimStart()
  const end = bytes.subarray(-64).toString('latin1').trimEnd()
  if (!text.startsWith('{') || !end.endsWith('}')) throw new HttpError(400, 'BadRequest', 'the body must be a state: one JSON object')
}

/** Parses the body of LOCK and UNLOCK. @throws {HttpError} 400 without a valid ID. */
export function parseLockInfo(bytes: Buffer): LockInfo {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    throw new HttpError(400, 'BadRequest', 'the body must be lock info as JSON, with the ID of the lock')
  }
  const { ID } = (value ?? {}) as { ID?: unknown }
  if (typeof ID !== 'string' || ID === '' || ID.length > 256) {
    throw new HttpError(400, 'BadRequest', 'the lock info must have an ID of 1 to 256 characters')
  }
  const info: LockInfo = { ID }
  for (const field of ['Operation', 'Info', 'Who', 'Version', 'Created', 'Path'] as const) {
    const text = (value as Record<string, unknown>)[field]
    if (typeof text === 'string') info[field] = text.slice(0, 4096)
  }
  // With an invalid time Terraform would drop the whole lock info when it displays it to another user.
  if (info.Created !== undefined && Number.isNaN(Date.parse(info.Created))) delete info.Created
  return info
}

/** Parses the body of `encrypt` and `decrypt`, `{"values":["<base64>",…]}`. @throws {HttpError} 400 */
export function parseValues(bytes: Buffer): Buffer[] {
  const wrong = () => new HttpError(400, 'BadRequest', 'the body must be {"values":[…]} with at most 10,000 values in base64')
  let values: unknown
  try {
    values = (JSON.parse(bytes.toString()) as { values?: unknown } | null)?.values
  } catch {
    throw wrong()
  }
  if (!Array.isArray(values) || values.length > 10_000) throw wrong()
  return values.map((value: unknown) => {
    if (typeof value !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(value)) throw wrong()
    return Buffer.from(value, 'base64')
  })
}

/** What follows the name of a Run. @throws {HttpError} 400 */
function parseRunPath([resource, argument, ...more]: readonly string[]): (Pick<RunTarget, 'resource'> & Partial<RunTarget>) | undefined {
  if (resource === 'outputs' && argument !== undefined && more.length === 0) {
    checkName('stack', argument, 'dns1123Subdomain')
    return { resource, outputsOf: argument }
  }
  const plain = runResources.find(name => name === resource)
  if (plain) return argument === undefined ? { resource: plain } : undefined
  if (argument === undefined) return undefined
  if (resource === 'plan' && more.length === 0) {
    checkDigest(argument)
    return { resource, digest: argument }
  }
  if (resource !== 'journal' || more.length > 1 || (more.length === 1 && more[0] !== 'complete')) return undefined
  return { resource: more.length === 1 ? 'complete' : 'journal', update: parseWholeNumber('the number of the update', argument) }
}

function checkDigest(digest: string): void {
  if (/^[A-Za-z0-9][A-Za-z0-9:._-]{0,127}$/.test(digest)) return
  throw new HttpError(400, 'BadRequest', 'the plan digest must have 1 to 128 characters of A-Z a-z 0-9 : . _ -')
}

function checkName(field: string, name: string, rule: 'dns1123Label' | 'dns1123Subdomain'): void {
  const [error] = nameErrors(name, rule)
  if (error !== undefined) throw new HttpError(400, 'BadRequest', `${field} ${JSON.stringify(name.slice(0, 100))} is invalid: ${error}`)
}

function parseWholeNumber(field: string, text: string | string[] | undefined): number {
  const number = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(number))
    throw new HttpError(400, 'BadRequest', `${field} must be a whole number, got ${JSON.stringify(text)?.slice(0, 100)}`)
  return number
}
