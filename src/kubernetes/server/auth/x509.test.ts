import assert from 'node:assert/strict'
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, isIP } from 'node:net'
import { test } from 'node:test'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { type CertificateRequest, signCertificate } from './x509.ts'

const nowMs = Date.now()
const dayMs = 24 * 60 * 60 * 1_000
const makeKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const life = { notBeforeMs: nowMs - dayMs, notAfterMs: nowMs + dayMs }

async function authority() {
  const { publicKey, privateKey } = makeKeys()
  const pem = await signCertificate({ subject: [['CN', 'harbour']], publicKey, ...life, use: 'ca' }, { key: privateKey })
  return { pem, key: privateKey, certificate: new X509Certificate(pem) }
}

async function issued(
  order: Pick<CertificateRequest, 'subject' | 'use'> & Partial<CertificateRequest>,
  signer?: Awaited<ReturnType<typeof authority>>,
) {
  const ca = signer ?? (await authority())
  const { publicKey, privateKey } = makeKeys()
  const pem = await signCertificate({ publicKey, ...life, ...order }, ca)
  return { pem, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), certificate: new X509Certificate(pem), ca }
}

test('an authority is self-signed and signs what it issues', async () => {
  const { certificate, ca } = await issued({ subject: [['CN', 'boat']], use: 'client' })
  assert.ok(ca.certificate.ca && ca.certificate.verify(ca.certificate.publicKey) && ca.certificate.checkIssued(ca.certificate))
  assert.ok(!certificate.ca && certificate.verify(ca.certificate.publicKey) && certificate.checkIssued(ca.certificate))
  assert.equal(certificate.issuer, ca.certificate.subject)
  assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.2'])
  assert.notEqual(certificate.serialNumber, (await issued({ subject: [['CN', 'boat']], use: 'client' })).certificate.serialNumber)
})

test('subjects keep their order, any characters and any length', async () => {
  const groups = Array.from({ length: 30 }, (_, i) => ['O', `Gruppe ${i} für Jörg`] as const)
  const { certificate } = await issued({ subject: [['CN', '王, O=x'], ...groups], use: 'client' })
  const { subject } = certificate.toLegacyObject() as unknown as { subject: { CN: string; O: string[] } }
  assert.equal(subject.CN, '王, O=x')
  assert.deepEqual(
    subject.O,
    groups.map(([, value]) => value),
  )
})

for (const name of [
  'localhost',
  'api.fleet.example',
  '127.0.0.1',
  '255.0.10.1',
  '::1',
  '::',
  'fe80::1:2',
  '2001:db8:1:2:3:4:5:6',
  '1::',
  '::ffff:10.1.2.3',
]) {
  test(`a serving certificate covers only ${name}`, async () => {
    const { certificate } = await issued({ subject: [['CN', 'oarlock']], use: { serves: [name] } })
    const matches = (other: string) => (isIP(other) ? certificate.checkIP(other) : certificate.checkHost(other)) !== undefined
    assert.ok(matches(name), String(certificate.subjectAltName))
    assert.ok(!matches('other.example') && !matches('127.0.0.2') && !matches('::2'))
    assert.deepEqual(certificate.keyUsage, ['1.3.6.1.5.5.7.3.1'])
  })
}

test('validity times have a resolution of one second, after 2049 too', async () => {
  for (const year of [2026, 2049, 2050, 2120]) {
    const notAfterMs = Date.UTC(year, 11, 31, 23, 59, 59)
    assert.equal(Date.parse((await issued({ subject: [['CN', 'x']], use: 'client', notAfterMs })).certificate.validTo), notAfterMs)
  }
})

// Created by the library that issued certificates before; it encoded its name as PrintableString. Valid until 2036.
const olderAuthority = `-----BEGIN CERTIFICATE-----
MIIBezCCASKgAwIBAgIQZkRewPdWrwuuXB56LGuO7jAKBggqhkjOPQQDAjAeMRww
GgYDVQQDExNvYXJsb2NrLWNhLTJjMDk0OTE0MB4XDTI2MTEyMTE2MDAwMloXDTM2
MTExODE3MDAwMlowHjEcMBoGA1UEAxMTb2FybG9jay1jYS0yYzA5NDkxNDBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABCxDH1NdpnivhOlmp4hsvCZEk1mG4pJ8N223
sKPNR8fkcMuXTELjFwutD1FaktH99E2K0B1NDIYb+WMqoyW0ktyjQjBAMA8GA1Ud
EwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgGGMB0GA1UdDgQWBBTrqmAKPlHM4TDk
sDX4h60xg4xHWjAKBggqhkjOPQQDAgNHADBEAiBkXKTAT4rOy/VLiPVwkcsm3wFT
hPYhqXvCxH8q2XY3OgIgCsEHi54t6HVV3XN0lWc5HNLqGo1CiSo1j0UgYQD7uIM=
-----END CERTIFICATE-----`
const olderKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbbzXONcqPUfPJngu
X1tnw72FlOqBhawZht53GF+du8ShRANCAAQsQx9TXaZ4r4TpZqeIbLwmRJNZhuKS
fDdtt7CjzUfH5HDLl0xC4xcLrQ9RWpLR/fRNitAdTQyGG/ljKqMltJLc
-----END PRIVATE KEY-----`

test('the issuer name is a byte-for-byte copy of the subject of the authority, so TLS accepts the certificate', async t => {
  const ca = { pem: olderAuthority, key: createPrivateKey(olderKey), certificate: new X509Certificate(olderAuthority) }
  const serving = await issued({ subject: [['CN', 'oarlock']], use: { serves: ['localhost'] } }, ca)
  const client = await issued(
    {
      subject: [
        ['CN', 'jane'],
        ['O', 'crew'],
      ],
      use: 'client',
    },
    ca,
  )
  const server = createServer({ cert: serving.pem, key: serving.key, ca: olderAuthority, requestCert: true, rejectUnauthorized: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: olderAuthority, cert: client.pem, key: client.key })
  const [[seen]] = await Promise.all([accepted, once(socket, 'secureConnect')])
  assert.ok(socket.authorized && seen.authorized)
  assert.equal(seen.getPeerCertificate().subject.CN, 'jane')
  socket.destroy()
})
