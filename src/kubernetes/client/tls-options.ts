import { readFile } from 'node:fs/promises'
import type { Authentication } from './authenticator.ts'
import type { ClusterAccess, Pem } from './cluster-access.ts'

/** The options of `node:tls` that a connection to a cluster needs. */
export type TlsOptions = { ca?: string; cert?: string; key?: string; rejectUnauthorized: boolean; servername?: string }

/**
 * Reads the certificates and keys of a cluster. `certificate` comes from an exec plugin and replaces the configured one.
 * @throws {TypeError} naming the file, or the part that is missing or not PEM.
 */
export async function loadTlsOptions(access: ClusterAccess, certificate: Authentication['certificate']): Promise<TlsOptions> {
  const { ca, clientCertificate, clientKey, insecureSkipTlsVerify, tlsServerName, source } = access
  const cert = certificate?.cert ?? (await readPem(clientCertificate))
  const key = certificate?.key ?? (await readPem(clientKey))
  if ((cert === undefined) !== (key === undefined)) {
    const [present, missing] = key === undefined ? ['certificate', 'key'] : ['key', 'certificate']
    throw new TypeError(`${source} has a client ${present} but no client ${missing}: set both or neither`)
  }
  return {
    ca: checkCertificate(await readPem(ca), `the certificate authority of ${source}`),
    cert: checkCertificate(cert, `the client certificate of ${source}`),
    key,
    rejectUnauthorized: !insecureSkipTlsVerify,
    ...(tlsServerName && { servername: tlsServerName }),
  }
}

/** Node's TLS ignores a certificate that it cannot parse, and then reports that the server is not trusted. */
function checkCertificate(pem: string | undefined, what: string): string | undefined {
  if (pem === undefined) return undefined
  try {
    ;new (process.getBuiltinModule('node:crypto').X509Certificate)(pem)
    return pem
  } catch (cause) {
    throw new TypeError(`${what} is not a PEM certificate: is it truncated, not base64-encoded, or encoded twice?`, { cause })
  }
}

async function readPem(pem: Pem | undefined): Promise<string | undefined> {
  if (!pem) return undefined
  if (pem.kind === 'text') return pem.text
  return await readFile(pem.path, 'utf8').catch(error => {
    throw new TypeError(`cannot read certificate or key file ${pem.path} (${error.code})`, { cause: error })
  })
}
