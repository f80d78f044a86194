import { type KeyObject, randomBytes, webcrypto, type X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type * as X509 from '@peculiar/x509'

/** A certificate (RFC 5280) of one of the three types that this server issues, signed with ECDSA and SHA-256. */
export type CertificateRequest = {
  /** `CN` and `O`, in order. */
  subject: readonly (readonly [attribute: 'CN' | 'O', value: string])[]
  publicKey: KeyObject
  notBeforeMs: number
  notAfterMs: number
  /** For a certificate authority, a server with these names and addresses, or a client. */
  use: 'ca' | 'client' | { serves: readonly string[] }
}
/** The issuer. Without a certificate, the signed certificate is self-signed. */
export type Signer = { key: KeyObject; certificate?: X509Certificate }

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** Issues a certificate; returns PEM. */
export async function signCertificate(order: CertificateRequest, { key, certificate }: Signer): Promise<string> {
  const { subject, notBeforeMs, notAfterMs, use } = order
  const x509 = await loadX509()
  const { digitalSignature, keyCertSign, cRLSign } = x509.KeyUsageFlags
  // The library has the types of browsers, which tests in a browser are checked with too.
  const publicKey = order.publicKey.toCryptoKey(algorithm, true, ['verify']) as CryptoKey
  const signer = certificate && new x509.X509Certificate(new Uint8Array(certificate.raw))
  const name = new x509.Name(subject.map(([attribute, value]) => ({ [attribute]: [{ utf8String: value }] })))
  const signed = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: name,
    issuer: signer?.subjectName ?? name,
    notBefore: new Date(notBeforeMs),
    notAfter: new Date(notAfterMs),
    publicKey,
    signingKey: key.toCryptoKey(algorithm, false, ['sign']) as CryptoKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(use === 'ca', undefined, true),
      new x509.KeyUsagesExtension(use === 'ca' ? digitalSignature | keyCertSign | cRLSign : digitalSignature, true),
      ...(use === 'ca' ? [await x509.SubjectKeyIdentifierExtension.create(publicKey)] : []),
      ...(signer ? [await x509.AuthorityKeyIdentifierExtension.create(signer.publicKey)] : []),
      ...extendedUse(x509, use),
    ],
  })
  return `${signed.toString('pem')}\n`
}

function extendedUse(x509: typeof X509, use: CertificateRequest['use']): X509.Extension[] {
  if (use === 'ca') return []
  if (use === 'client') return [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth])]
  const names = use.serves.map(value =>
    isIP(value) ? { type: 'ip' as const, value: plainAddress(value) } : { type: 'dns' as const, value },
  )
  return [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]), new x509.SubjectAlternativeNameExtension(names)]
}

/** Removes the zone, which certificates do not contain, and converts an IPv4 suffix of IPv6, which the library cannot parse. */
function plainAddress(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address.replace(/%.*/, '')}]`).hostname.slice(1, -1) : address
}

// Positive and at most 20 bytes, as RFC 5280 requires.
function serialNumber(): string {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x7f) | 0x40
  return bytes.toString('hex')
}

let loading: Promise<typeof X509> | undefined

/**
 * Loads the library when the first certificate is issued, which is on the first start and then once a year: loading takes 80 ms and 7 MB,
 * which other starts avoid. (A short-lived thread was tried: it leaves more memory behind.)
 */
function loadX509(): Promise<typeof X509> {
  loading ??= (async () => {
    // The library registers its classes with tsyringe, which refuses to load without this polyfill.
    await import('reflect-metadata')
    const x509 = await import('@peculiar/x509')
    x509.cryptoProvider.set(webcrypto as unknown as Crypto)
    return x509
  })()
  return loading
}
