import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Creates a self-signed certificate for 127.0.0.1 and localhost with openssl; `path` is its file in `directory`. */
export function makeCertificate(directory: string): { path: string; cert: string; key: string } {
  const [keyPath, path] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
  const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
  const names = ['-subj', '/CN=oarlock test', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost']
  execFileSync('openssl', [...kind, ...names, '-keyout', keyPath, '-out', path], { stdio: 'pipe' })
  return { path, cert: readFileSync(path, 'utf8'), key: readFileSync(keyPath, 'utf8') }
}
