import { X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import { createCertificates } from '../listener/tls-listener.ts'
import { servingNames, servingSecretName } from './names.ts'

export type ServingCertificate = { readonly certificate: string; readonly key: string; readonly ca: string | undefined }

/** Keys of the Secret, as cert-manager writes it, and the files that they are kept in while a certificate is issued. */
const files = { 'ca.crt': 'ca.crt', 'ca.key': 'ca.key', 'tls.crt': 'serving.crt', 'tls.key': 'serving.key' } as const

/** The certificate in the Secret; undefined if it has none, as the one that cert-manager has not filled yet. */
export function certificateOf(secret: KubeObject<SecretBody> | undefined): ServingCertificate | undefined {
  const text = (key: string) => {
    const value = secret?.data?.[key]
    return value === undefined || value === '' ? undefined : Buffer.from(value, 'base64').toString('utf8')
  }
  const [certificate, key] = [text('tls.crt'), text('tls.key')]
  return certificate === undefined || key === undefined ? undefined : { certificate, key, ca: text('ca.crt') }
}

/** Whether clients no longer accept it: also if it cannot be parsed. */
export function isExpired({ certificate }: ServingCertificate, nowMs: number): boolean {
  try {
    return new X509Certificate(certificate).validToDate.getTime() <= nowMs
  } catch {
    return true
  }
}

/**
 * Creates the Secret, or renews what expires soon in it: the serving certificate, and after ten years its authority. Several processes may do so:
 * each writes the version that it has read, and the others take what the first has written.
 * @throws {AppStartError} if the authority in the Secret is damaged. @throws {StatusError} if it may not be written.
 */
export async function renewServingSecret(client: Client, found: KubeObject<SecretBody> | undefined, directory: string): Promise<void> {
  const pki = join(directory, 'pki')
  try {
    mkdirSync(pki, { recursive: true, mode: 0o700 })
    for (const [key, file] of Object.entries(files)) {
      const value = found?.data?.[key]
      // Without the key of its authority it was issued by another one, such as cert-manager, and is replaced.
      if (value !== undefined && found?.data?.['ca.key']) writeFileSync(join(pki, file), Buffer.from(value, 'base64'), { mode: 0o600 })
    }
    await createCertificates(directory, servingNames[0]!, servingNames)
    const entries = Object.entries(files).map(([key, file]) => [key, readFileSync(join(pki, file)).toString('base64')] as const)
    if (found && entries.every(([key, value]) => found.data?.[key] === value)) return
    const encoded = Object.fromEntries(entries)
    const secrets = client.resource(secretResource)
    const metadata = { name: servingSecretName, namespace: systemNamespace }
    if (!found) await secrets.create({ metadata, type: 'kubernetes.io/tls', data: encoded })
    else
      await secrets.patch(
        servingSecretName,
        { data: encoded },
        { type: 'merge', namespace: systemNamespace, resourceVersion: found.metadata.resourceVersion },
      )
  } catch (error) {
    if (!isReason(error, 'AlreadyExists', 'Conflict')) throw error
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
