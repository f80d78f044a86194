import { createHash, type KeyObject, randomBytes, sign, type X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'

/**
 * X.509 certificates (RFC 5280) of the three shapes that this server issues, signed with ECDSA and SHA-256. Only written here; read they
 * are by node:crypto. A library that can do all of X.509 cost the first start 80 ms and left 7 MB behind for good.
 */
export type CertificateOrder = {
  /** `CN` and `O`, in order. */
  subject: readonly (readonly [attribute: 'CN' | 'O', value: string])[]
  publicKey: KeyObject
  notBeforeMs: number
  notAfterMs: number
  /** A certificate authority, a server with these names and addresses, or a client. */
  use: 'ca' | 'client' | { serves: readonly string[] }
}
/** Who signs. Without a certificate: what is signed is its own. */
export type Signer = { key: KeyObject; certificate?: X509Certificate }

const attributes = { CN: '2.5.4.3', O: '2.5.4.10' }
const ecdsaWithSha256 = '1.2.840.10045.4.3.2'
const tags = { boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, sequence: 0x30, set: 0x31 }

/** Issues one certificate. Returns PEM. */
export function signCertificate(order: CertificateOrder, signer: Signer): string {
  const { subject, publicKey, notBeforeMs, notAfterMs, use } = order
  const name = nameOf(subject)
  const algorithm = sequence(oid(ecdsaWithSha256))
  const body = sequence(
    der(0xa0, der(tags.integer, Buffer.of(2))),
    der(tags.integer, serialNumber()),
    algorithm,
    signer.certificate ? subjectOf(signer.certificate) : name,
    sequence(time(notBeforeMs), time(notAfterMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions(use, publicKey, signer.certificate?.publicKey))),
  )
  const signature = sign('sha256', body, signer.key)
  const bytes = sequence(body, algorithm, bits(signature)).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${bytes.match(/.{1,64}/g)!.join('\n')}\n-----END CERTIFICATE-----\n`
}

function extensions(use: CertificateOrder['use'], publicKey: KeyObject, signerKey: KeyObject | undefined): Buffer[] {
  const authority = signerKey ? [extension('2.5.29.35', sequence(der(0x80, keyIdentifier(signerKey))))] : []
  if (use === 'ca') {
    return [
      extension('2.5.29.19', sequence(der(tags.boolean, Buffer.of(0xff))), true),
      // digitalSignature, keyCertSign, cRLSign
      extension('2.5.29.15', bits(Buffer.of(0b1000_0110), 1), true),
      extension('2.5.29.14', der(tags.octets, keyIdentifier(publicKey))),
      ...authority,
    ]
  }
  return [
    extension('2.5.29.19', sequence(), true),
    // digitalSignature
    extension('2.5.29.15', bits(Buffer.of(0b1000_0000), 7), true),
    ...authority,
    extension('2.5.29.37', sequence(oid(use === 'client' ? '1.3.6.1.5.5.7.3.2' : '1.3.6.1.5.5.7.3.1'))),
    ...(use === 'client' ? [] : [extension('2.5.29.17', sequence(...use.serves.map(alternativeName)))]),
  ]
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [der(tags.boolean, Buffer.of(0xff))] : []), der(tags.octets, value))
}

function alternativeName(name: string): Buffer {
  return isIP(name) ? der(0x87, addressBytes(name)) : der(0x82, Buffer.from(name, 'latin1'))
}

function addressBytes(address: string): Buffer {
  const octets = (text: string) => text.split('.').map(Number)
  if (isIP(address) === 4) return Buffer.from(octets(address))
  // One run of zeros may be left out, the end may be an IPv4 address, and a zone is no part of a certificate.
  const groups = (text: string) =>
    text
      .split(':')
      .filter(Boolean)
      .flatMap(group => (group.includes('.') ? octets(group) : [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]))
  const [before = '', after = ''] = address.replace(/%.*/, '').split('::')
  const bytes = Buffer.alloc(16)
  bytes.set(groups(before))
  bytes.set(groups(after), 16 - groups(after).length)
  return bytes
}

function nameOf(subject: CertificateOrder['subject']): Buffer {
  return sequence(
    ...subject.map(([attribute, value]) => der(tags.set, sequence(oid(attributes[attribute]), der(tags.utf8, Buffer.from(value))))),
  )
}

/** The subject as its bytes are: an issuer must be named with the same ones. */
function subjectOf({ raw }: X509Certificate): Buffer {
  const [body] = contentOf(raw)
  // Version, serial number, algorithm, issuer, validity, subject.
  return contentOf(body!)[5]!
}

// RFC 5280, section 4.2.1.2, method 1.
function keyIdentifier(publicKey: KeyObject): Buffer {
  const [, key] = contentOf(publicKey.export({ type: 'spki', format: 'der' }))
  // Behind tag, length and the number of unused bits.
  return createHash('sha1').update(key!.subarray(3)).digest()
}

// Positive and at most 20 bytes, as RFC 5280 asks.
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x7f) | 0x40
  return bytes
}

// Two digits of the year until 2049, four from then on (RFC 5280, section 4.1.2.5).
function time(ms: number): Buffer {
  const text = `${new Date(ms).toISOString().replace(/\.\d+Z$|[-:T]/g, '')}Z`
  return new Date(ms).getUTCFullYear() < 2050 ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text))
}

function sequence(...parts: Buffer[]): Buffer {
  return der(tags.sequence, ...parts)
}

function bits(bytes: Buffer, unused = 0): Buffer {
  return der(tags.bits, Buffer.of(unused), bytes)
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const part of rest) {
    const digits = [part & 0x7f]
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80)
    bytes.push(...digits)
  }
  return der(tags.oid, Buffer.from(bytes))
}

/** One value of DER: tag, length, content (X.690, section 8.1). */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content])
  return Buffer.concat([length < 0x100 ? Buffer.of(tag, 0x81, length) : Buffer.of(tag, 0x82, length >> 8, length & 0xff), content])
}

/** The values inside of one, whole. */
function contentOf(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let at = headerOf(bytes, 0).contentAt; at < bytes.length; ) {
    const { contentAt, length } = headerOf(bytes, at)
    parts.push(bytes.subarray(at, contentAt + length))
    at = contentAt + length
  }
  return parts
}

function headerOf(bytes: Buffer, at: number): { contentAt: number; length: number } {
  const first = bytes[at + 1]!
  if (first < 0x80) return { contentAt: at + 2, length: first }
  const digits = first & 0x7f
  return { contentAt: at + 2 + digits, length: bytes.readUIntBE(at + 2, digits) }
}
