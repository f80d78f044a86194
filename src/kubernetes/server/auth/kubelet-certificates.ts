import { join } from 'node:path'
import { writeSecretFile } from '../storage/index.ts'
import {
  createAuthority,
  isPair,
  isSignedBy,
  issueCertificate,
  issueClientCertificate,
  isValid,
  type Pair,
  readAuthority,
  readPair,
} from './certificates.ts'
import { nodeUser } from './node/index.ts'
import { kubeletClientUser } from './rbac/index.ts'

const dayMs = 24 * 60 * 60 * 1_000
const clientValidityMs = 365 * dayMs
const authorityName = 'kubelet-ca'

/** What a kubelet needs, PEM. */
export type KubeletCertificates = {
  /** With which it is the user `system:node:NAME` of the API server. */
  readonly client: Pair
  /** With which it serves logs and streams, for the name of its Node and its addresses. */
  readonly serving: Pair
  /** Signs the client certificate of the server: the kubelet's `clientCAFile`. */
  readonly clientCa: string
}

/**
 * Issues the certificates of a kubelet. Its serving certificate and the client certificate of the server have an authority of their own, which
 * only they trust: with one of the authority of the API server, a Node could pretend to be the API server.
 * @throws {Error} if the server has not created its authority yet.
 */
export async function issueKubeletCertificates(
  pkiDir: string,
  { node, addresses, ttlMs }: { node: string; addresses: readonly string[]; ttlMs: number },
  nowMs: number,
): Promise<KubeletCertificates> {
  const client = await issueClientCertificate(pkiDir, { ...nodeUser(node), ttlMs }, nowMs)
  const found = readAuthority(pkiDir, authorityName)
  const ca = found && isValid(found.certificate, nowMs) ? found : await createAuthority(pkiDir, nowMs, authorityName)
  const { name, groups } = nodeUser(node)
  const subject = [['CN', name], ...groups.map(group => ['O', group] as const)] as const
  const serving = await issueCertificate(subject, { serves: [node, ...addresses.filter(address => address !== node)] }, ttlMs, ca, nowMs)
  return { client, serving, clientCa: ca.certificate }
}

/**
 * The certificate with which the server authenticates to kubelets, and the authority that kubelets have theirs from; created when it is missing
 * and renewed before it expires. Undefined if no kubelet was ever issued a certificate.
 */
export async function readKubeletClient(pkiDir: string, nowMs: number): Promise<(Pair & { ca: string }) | undefined> {
  const ca = readAuthority(pkiDir, authorityName)
  if (!ca) return undefined
  const known = readPair(pkiDir, 'kubelet-client')
  if (known && isValid(known.certificate, nowMs) && isSignedBy(known.certificate, ca.certificate) && isPair(known)) {
    return { ...known, ca: ca.certificate }
  }
  const made = await issueCertificate([['CN', kubeletClientUser]], 'client', clientValidityMs, ca, nowMs)
  writeSecretFile(join(pkiDir, 'kubelet-client.key'), made.key)
  writeSecretFile(join(pkiDir, 'kubelet-client.crt'), made.certificate)
  return { ...made, ca: ca.certificate }
}
