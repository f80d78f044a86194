import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { readIfExists, ServerStartError, writeSecretFile } from '../storage/index.ts'
import { type CertificateRequest, type Signer, signCertificate } from './x509.ts'

const dayMs = 24 * 60 * 60 * 1_000
const caValidityMs = 10 * 365 * dayMs
const servingValidityMs = 365 * dayMs
const renewBeforeMs = 30 * dayMs
/** Clients whose clocks are at most this far behind accept a new certificate. */
const clockSkewMs = 60 * 60 * 1_000

/** PEM. */
export type Pair = { certificate: string; key: string }
export type ServingCertificates = Pair & { ca: string }

/**
 * The server's own certificate authority and its serving certificate, kept in `pkiDir`. Missing ones are created; the serving certificate
 * is renewed before it expires, when it does not cover `host`, and when its files are damaged.
 * @throws {ServerStartError} DataCorrupt, if the files of the certificate authority are damaged: a new one would lock out every client.
 */
export async function readCertificates(
  pkiDir: string,
  host: string,
  nowMs: number,
  others: readonly string[] = [],
): Promise<ServingCertificates> {
  const names = [...new Set(['localhost', '127.0.0.1', '::1', ...(isWildcard(host) ? machineNames() : [host]), ...others])]
  const found = readAuthority(pkiDir)
  const ca = found && isValid(found.certificate, nowMs) ? found : await createAuthority(pkiDir, nowMs)
  const serving = readPair(pkiDir, 'serving')
  if (
    serving &&
    isValid(serving.certificate, nowMs) &&
    coversAll(serving.certificate, names) &&
    isSignedBy(serving.certificate, ca.certificate) &&
    isPair(serving)
  ) {
    return { ca: ca.certificate, ...serving }
  }
  const made = await issueCertificate([['CN', 'oarlock']], { serves: names }, servingValidityMs, ca, nowMs)
  writeSecretFile(join(pkiDir, 'serving.key'), made.key)
  writeSecretFile(join(pkiDir, 'serving.crt'), made.certificate)
  return { ca: ca.certificate, ...made }
}

/** Issues a client certificate and its key: `CN` is the user, `O` its groups. */
export async function issueClientCertificate(
  pkiDir: string,
  user: { name: string; groups: readonly string[]; ttlMs: number },
  nowMs: number,
): Promise<Pair> {
  const ca = readAuthority(pkiDir)
  if (!ca) throw new Error(`no certificate authority in ${pkiDir}: start the server once to create it`)
  return issueCertificate([['CN', user.name], ...user.groups.map(group => ['O', group] as const)], 'client', user.ttlMs, ca, nowMs)
}

/** @param name of its files, and in its subject. */
export async function createAuthority(pkiDir: string, nowMs: number, name = 'ca'): Promise<Pair> {
  const { publicKey, privateKey } = createKeys()
  const subject = [['CN', `oarlock-${name}-${randomBytes(4).toString('hex')}`]] as const
  const life = { notBeforeMs: nowMs - clockSkewMs, notAfterMs: nowMs + caValidityMs }
  const certificate = await signCertificate({ subject, publicKey, ...life, use: 'ca' }, { key: privateKey })
  const key = pemOf(privateKey)
  writeSecretFile(join(pkiDir, `${name}.key`), key)
  writeSecretFile(join(pkiDir, `${name}.crt`), certificate)
  return { certificate, key }
}

export async function issueCertificate(
  subject: CertificateRequest['subject'],
  use: CertificateRequest['use'],
  lifeMs: number,
  ca: Pair,
  nowMs: number,
): Promise<Pair> {
  const { publicKey, privateKey } = createKeys()
  const signer: Signer = { key: createPrivateKey(ca.key), certificate: new X509Certificate(ca.certificate) }
  const notAfterMs = Math.min(nowMs + lifeMs, Date.parse(signer.certificate!.validTo))
  const certificate = await signCertificate({ subject, publicKey, notBeforeMs: nowMs - clockSkewMs, notAfterMs, use }, signer)
  return { certificate, key: pemOf(privateKey) }
}

function createKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

export function readPair(pkiDir: string, name: string): Pair | undefined {
  const certificate = readIfExists(join(pkiDir, `${name}.crt`))
  const key = readIfExists(join(pkiDir, `${name}.key`))
  return certificate !== undefined && key !== undefined ? { certificate, key } : undefined
}

/**
 * The certificate authority; undefined if there is none. Its key alone is what an interrupted first start leaves, because it is written first.
 * @throws {ServerStartError} DataCorrupt.
 */
export function readAuthority(pkiDir: string, name = 'ca'): Pair | undefined {
  const path = (end: string) => join(pkiDir, `${name}.${end}`)
  const certificate = readIfExists(path('crt'))
  const key = readIfExists(path('key'))
  if (certificate === undefined) return undefined
  if (key === undefined) throw damaged(path('key'), 'is missing', path('crt'))
  if (!parse(certificate)) throw damaged(path('crt'), 'is not a PEM certificate', path('key'))
  if (!parseKey(key)) throw damaged(path('key'), 'is not a PEM key', path('crt'))
  if (!isPair({ certificate, key })) throw damaged(path('key'), `is not the key of ${path('crt')}`, path('crt'))
  return { certificate, key }
}

function damaged(path: string, problem: string, other: string): ServerStartError {
  return new ServerStartError(
    'DataCorrupt',
    `${path} ${problem}: restore it from a backup, or remove it and ${other} for a new certificate authority, which clients and workers must then get`,
  )
}

export function isPair({ certificate, key }: Pair): boolean {
  const privateKey = parseKey(key)
  return privateKey !== undefined && parse(certificate)?.checkPrivateKey(privateKey) === true
}

function parseKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem)
  } catch {
    return undefined
  }
}

function parse(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

export function isValid(pem: string, nowMs: number): boolean {
  const certificate = parse(pem)
  return certificate !== undefined && Date.parse(certificate.validTo) - renewBeforeMs > nowMs
}

export function isSignedBy(pem: string, caPem: string): boolean {
  const ca = parse(caPem)
  const certificate = parse(pem)
  return ca !== undefined && certificate?.verify(ca.publicKey) === true
}

function coversAll(pem: string, names: string[]): boolean {
  const certificate = parse(pem)
  return names.every(name => (isIP(name) ? certificate?.checkIP(name) : certificate?.checkHost(name)))
}

/**
 * The names by which other machines reach a server that listens on every address. Link-local addresses are excluded: they are valid on one
 * link only and change.
 */
function machineNames(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap(some => some ?? [])
  const name = hostname()
  return [
    ...(/^[a-zA-Z0-9.-]+$/.test(name) ? [name] : []),
    ...addresses.filter(({ internal, scopeid }) => !internal && !scopeid).map(({ address }) => address),
  ]
}

function isWildcard(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::'
}
