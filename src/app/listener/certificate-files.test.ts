import { equal, match, throws } from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect } from 'node:tls'
import { eventually } from '../../../test/support/eventually.ts'
import { type CertificateFiles, readCertificateFiles } from './certificate-files.ts'
import { createCertificates, startTlsListener } from './tls-listener.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-certificate-files-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** A certificate of an authority of its own. */
async function issue(name: string): Promise<Required<CertificateFiles>> {
  await createCertificates(join(directory, name), '127.0.0.1', [])
  const path = (file: string) => join(directory, name, 'pki', file)
  return { certificate: path('serving.crt'), key: path('serving.key'), ca: path('ca.crt') }
}

const [first, second] = [await issue('first'), await issue('second')]
const text = (path: string) => readFileSync(path, 'utf8')

test('files that do not belong together are rejected with their flags', () => {
  throws(
    () => readCertificateFiles({ ...first, key: second.key }),
    /--tls-private-key-file \S+ is not the key of --tls-cert-file \S+serving\.crt$/,
  )
  throws(() => readCertificateFiles({ ...first, certificate: first.key }), /--tls-cert-file \S+ must be a PEM certificate/)
  throws(() => readCertificateFiles({ ...first, key: first.certificate }), /--tls-private-key-file \S+ must be a PEM key/)
  throws(() => readCertificateFiles({ ...first, ca: first.key }), /--tls-ca-file \S+ must be a PEM certificate/)
  throws(() => readCertificateFiles({ ...first, certificate: join(directory, 'none') }), /failed to read --tls-cert-file \S+ \(ENOENT\)/)
})

test('an authority that is missing or empty, as in a Secret of a public issuer, is that of the system', () => {
  const empty = join(directory, 'empty')
  writeFileSync(empty, '\n')
  for (const ca of [empty, join(directory, 'none')]) equal(readCertificateFiles({ ...first, ca }).ca, undefined)
})

test('a renewed certificate and its authority are served without a restart, and a half-written pair is not', async () => {
  const served = { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key'), ca: join(directory, 'ca.crt') }
  const write = (what: keyof typeof served, from: Required<CertificateFiles>) => copyFileSync(from[what], served[what])
  for (const what of ['certificate', 'key', 'ca'] as const) write(what, first)
  const errors: unknown[] = []
  const authorities: (string | undefined)[] = []
  const listener = await startTlsListener({
    ...{ role: 'test', dataDir: directory, listen: { host: '127.0.0.1', port: 0 }, names: [], mounts: [] },
    certificateFiles: served,
    authenticate: async () => undefined,
    notReady: () => [],
    onCaChange: ca => void authorities.push(ca),
    onError: error => errors.push(error),
    limits: { certificateCheckMs: 5 },
  })
  try {
    const port = Number(new URL(listener.url).port)
    const isTrustedBy = (ca: string) =>
      new Promise<boolean>(resolve => {
        const socket = connect({ port, host: '127.0.0.1', ca }, () => resolve(true))
        socket.on('secureConnect', () => socket.destroy()).on('error', () => resolve(false))
      })
    equal(listener.caCertificate, text(first.ca))
    equal(await isTrustedBy(text(first.ca)), true)
    write('certificate', second)
    await eventually(() => errors.length > 0, 'the half-written pair to be reported')
    match(String(errors[0]), /is not the key of --tls-cert-file/)
    equal(await isTrustedBy(text(first.ca)), true)
    write('key', second)
    write('ca', second)
    await eventually(() => listener.caCertificate === text(second.ca), 'the renewed certificate to be served')
    equal(await isTrustedBy(text(second.ca)), true)
    equal(await isTrustedBy(text(first.ca)), false)
    equal(authorities.at(-1), text(second.ca))
    rmSync(served.ca)
    await eventually(() => authorities.at(-1) === undefined, 'the authority to be withdrawn')
    equal(errors.length, 1, 'one line for files that stay wrong')
  } finally {
    await listener.close()
  }
})
