import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { KubeObject } from '../../../object/index.ts'
import { fieldsOf, textOf } from '../type-rules/index.ts'

/** Errors of the certificate and key in a Secret of type `kubernetes.io/tls`, with the messages of Go's crypto/tls. */
export function tlsWarnings({ type, data }: KubeObject): string[] {
  if (type !== 'kubernetes.io/tls') return []
  const [certificate, key] = ['tls.crt', 'tls.key'].map(name => Buffer.from(textOf(fieldsOf(data)[name]), 'base64').toString('latin1'))
  const reason = mismatch(certificate ?? '', key ?? '')
  return reason === undefined ? [] : [`tls: ${reason}`]
}

function mismatch(certificate: string, key: string): string | undefined {
  if (!/-----BEGIN [A-Z0-9 ]+-----/.test(certificate)) return 'failed to find any PEM data in certificate input'
  if (!certificate.includes('-----BEGIN CERTIFICATE-----')) {
    return 'failed to find "CERTIFICATE" PEM block in certificate input'
  }
  if (!/-----BEGIN [A-Z0-9 ]+-----/.test(key)) return 'failed to find any PEM data in key input'
  try {
    const isPair = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
    return isPair ? undefined : 'private key does not match public key'
  } catch {
    return 'failed to parse certificate or private key'
  }
}
