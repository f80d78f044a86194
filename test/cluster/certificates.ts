import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type KeyPair = { readonly certFile: string; readonly keyFile: string }

const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' })
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/** A certificate authority in `directory`, for the days of a test. */
export class CertificateAuthority {
  readonly certFile: string
  readonly keyFile: string
  readonly #directory: string

  constructor(directory: string, name: string) {
    this.#directory = directory
    this.certFile = join(directory, `${name}.crt`)
    this.keyFile = join(directory, `${name}.key`)
    openssl('req', '-x509', ...newKey, '-days', '2', '-subj', `/CN=${name}`, '-keyout', this.keyFile, '-out', this.certFile)
  }

  /** @param subject such as `/O=system:masters/CN=admin`. @param names such as `DNS:kubernetes,IP:10.96.0.1`, for servers. */
  issue(name: string, subject: string, names?: string): KeyPair {
    const [certFile, keyFile, request] = ['crt', 'key', 'csr'].map(extension => join(this.#directory, `${name}.${extension}`)) as [
      string,
      string,
      string,
    ]
    const extensions = join(this.#directory, `${name}.ext`)
    const usage = names === undefined ? 'clientAuth' : 'serverAuth,clientAuth'
    writeFileSync(extensions, `extendedKeyUsage=${usage}\n${names === undefined ? '' : `subjectAltName=${names}\n`}`)
    openssl('req', ...newKey, '-subj', subject, '-keyout', keyFile, '-out', request)
    const from = ['-CA', this.certFile, '-CAkey', this.keyFile, '-CAcreateserial', '-days', '2']
    openssl('x509', '-req', '-in', request, ...from, '-extfile', extensions, '-out', certFile)
    return { certFile, keyFile }
  }
}
