import { X509Certificate as NodeCertificate, randomBytes, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type * as X509 from '@peculiar/x509'
import { loadX509 } from './load-x509.ts'
import { readIfThere, writeSecretFile } from './secret-file.ts'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const dayMs = 24 * 60 * 60 * 1_000
const caLifeMs = 10 * 365 * dayMs
const servingLifeMs = 365 * dayMs
const renewBeforeMs = 30 * dayMs

export type ServingCertificates = { ca: string; certificate: string; key: string }

/**
 * The server's own certificate authority and the certificate it serves with, kept in `pkiDir`. Both are made when
 * missing; the serving certificate is made again when it nears its end or does not name `host`.
 */
export async function readCertificates(pkiDir: string, host: string, nowMs: number): Promise<ServingCertificates> {
  const names = [...new Set(['localhost', '127.0.0.1', '::1', ...(isWildcard(host) ? [] : [host])])]
  const ca = readPair(pkiDir, 'ca')
  const serving = readPair(pkiDir, 'serving')
  if (ca && isGood(ca.certificate, nowMs)) {
    if (
      serving &&
      isGood(serving.certificate, nowMs) &&
      coversAll(serving.certificate, names) &&
      isSignedBy(serving.certificate, ca.certificate)
    ) {
      return { ca: ca.certificate, certificate: serving.certificate, key: serving.key }
    }
    const x509 = await loadX509()
    const key = await importKey(ca.key)
    return issueServing(pkiDir, new x509.X509Certificate(ca.certificate), ca.certificate, key, names, nowMs)
  }
  const x509 = await loadX509()
  const keys = await makeKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=oarlock-ca-${randomBytes(4).toString('hex')}`,
    notBefore: new Date(nowMs - 60 * 60 * 1_000),
    notAfter: new Date(nowMs + caLifeMs),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  const pem = certificate.toString('pem')
  writeSecretFile(join(pkiDir, 'ca.key'), await exportKey(keys.privateKey))
  writeSecretFile(join(pkiDir, 'ca.crt'), pem)
  return issueServing(pkiDir, certificate, pem, keys.privateKey, names, nowMs)
}

/** Signs a client certificate: `CN` is the user, `O` its groups. Its key is made here. */
export async function issueClientCertificate(
  pkiDir: string,
  user: { name: string; groups: readonly string[]; ttlMs: number },
  nowMs: number,
): Promise<{ certificate: string; key: string }> {
  const ca = readPair(pkiDir, 'ca')
  if (!ca) throw new Error(`there is no certificate authority in ${pkiDir}: start the server once`)
  const x509 = await loadX509()
  const subject = [{ CN: [user.name] }, ...user.groups.map(group => ({ O: [group] }))]
  return issue(new x509.X509Certificate(ca.certificate), await importKey(ca.key), subject, user.ttlMs, nowMs, [
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
  ])
}

async function issueServing(
  pkiDir: string,
  ca: X509.X509Certificate,
  caPem: string,
  caKey: webcrypto.CryptoKey,
  names: string[],
  nowMs: number,
): Promise<ServingCertificates> {
  const x509 = await loadX509()
  const alternatives = names.map(name => ({ type: isIP(name) ? ('ip' as const) : ('dns' as const), value: name }))
  const issued = await issue(ca, caKey, [{ CN: ['oarlock'] }], servingLifeMs, nowMs, [
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    new x509.SubjectAlternativeNameExtension(alternatives),
  ])
  writeSecretFile(join(pkiDir, 'serving.key'), issued.key)
  writeSecretFile(join(pkiDir, 'serving.crt'), issued.certificate)
  return { ca: caPem, ...issued }
}

async function issue(
  ca: X509.X509Certificate,
  caKey: webcrypto.CryptoKey,
  subject: X509.JsonName,
  lifeMs: number,
  nowMs: number,
  extensions: X509.Extension[],
): Promise<{ certificate: string; key: string }> {
  const x509 = await loadX509()
  const keys = await makeKeys()
  const notAfterMs = Math.min(nowMs + lifeMs, ca.notAfter.getTime())
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject,
    issuer: ca.subject,
    notBefore: new Date(nowMs - 60 * 60 * 1_000),
    notAfter: new Date(notAfterMs),
    publicKey: keys.publicKey,
    signingKey: caKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
      ...extensions,
    ],
  })
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) }
}

function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${bytes.match(/.{1,64}/g)!.join('\n')}\n-----END PRIVATE KEY-----\n`
}

function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const bytes = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  return webcrypto.subtle.importKey('pkcs8', bytes, algorithm, true, ['sign'])
}

function readPair(pkiDir: string, name: string): { certificate: string; key: string } | undefined {
  const certificate = readIfThere(join(pkiDir, `${name}.crt`))
  const key = readIfThere(join(pkiDir, `${name}.key`))
  return certificate !== undefined && key !== undefined ? { certificate, key } : undefined
}

function parse(pem: string): NodeCertificate | undefined {
  try {
    return new NodeCertificate(pem)
  } catch {
    return undefined
  }
}

function isGood(pem: string, nowMs: number): boolean {
  const certificate = parse(pem)
  return certificate !== undefined && Date.parse(certificate.validTo) - renewBeforeMs > nowMs
}

function isSignedBy(pem: string, caPem: string): boolean {
  const ca = parse(caPem)
  const certificate = parse(pem)
  return ca !== undefined && certificate?.verify(ca.publicKey) === true
}

function coversAll(pem: string, names: string[]): boolean {
  const certificate = parse(pem)
  return names.every(name => (isIP(name) ? certificate?.checkIP(name) : certificate?.checkHost(name)))
}

function isWildcard(host: string): boolean {
  return host === '' || host === '0.0.0.0' || host === '::'
}

// Positive and at most 20 bytes, as RFC 5280 asks.
function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x7f) | 0x40
  return bytes.toString('hex')
}
