import { join } from 'node:path'
import { readIfExists, ServerStartError, writeSecretFile } from '../storage/index.ts'
import { createAuthority, issueCertificate, isValid, type Pair, readAuthority } from './certificates.ts'

const kubeletAuthority = 'kubelet-ca'
const proxyAuthority = 'front-proxy-ca'

/** What servers behind one gateway have in common, by file of `pki/`: a certificate or token that one of them has issued is valid in all. */
export type SharedTrust = Readonly<Record<(typeof sharedFiles)[number], string>>

const sharedFiles = [
  'ca.crt',
  'ca.key',
  `${kubeletAuthority}.crt`,
  `${kubeletAuthority}.key`,
  `${proxyAuthority}.crt`,
  'service-account.key',
  'token-key',
] as const

/**
 * The authority whose client certificates identify front proxies, PEM; created when it is missing. It signs nothing else, so that no user's certificate
 * can be that of a proxy.
 */
export async function frontProxyAuthority(pkiDir: string, nowMs: number): Promise<Pair> {
  return await authorityOf(pkiDir, proxyAuthority, nowMs)
}

/** The certificate of {@link frontProxyAuthority}; undefined if it was never created. */
export function readFrontProxyCa(pkiDir: string): string | undefined {
  return readIfExists(join(pkiDir, `${proxyAuthority}.crt`))
}

/** Issues the certificate with which a front proxy of this name authenticates. */
export async function issueFrontProxyCertificate(pkiDir: string, proxy: { name: string; ttlMs: number }, nowMs: number): Promise<Pair> {
  return await issueCertificate([['CN', proxy.name]], 'client', proxy.ttlMs, await frontProxyAuthority(pkiDir, nowMs), nowMs)
}

/** Issues a serving certificate of the server's own authority for these host names and addresses. */
export async function issueServingCertificate(
  pkiDir: string,
  serving: { name: string; names: readonly string[]; ttlMs: number },
  nowMs: number,
): Promise<Pair> {
  const ca = readAuthority(pkiDir)
  if (!ca) throw new Error(`no certificate authority in ${pkiDir}: start the server once to create it`)
  return await issueCertificate([['CN', serving.name]], { serves: [...serving.names] }, serving.ttlMs, ca, nowMs)
}

/**
 * What another server needs, so that it accepts what this one has issued. It contains private keys: who has it can be any user.
 * @throws {Error} if the server has not created its authority yet.
 */
export async function readSharedTrust(pkiDir: string, nowMs: number): Promise<SharedTrust> {
  await authorityOf(pkiDir, kubeletAuthority, nowMs)
  await authorityOf(pkiDir, proxyAuthority, nowMs)
  const files = sharedFiles.map(name => {
    const text = readIfExists(join(pkiDir, name))
    if (text === undefined) throw new Error(`no ${name} in ${pkiDir}: start the server once to create it`)
    return [name, text] as const
  })
  return Object.fromEntries(files) as SharedTrust
}

/**
 * Writes what a server has in common with others, before its first start.
 * @throws {ServerStartError} KeysDiffer if the directory has other keys: whatever was issued with them would become invalid.
 */
export function writeSharedTrust(pkiDir: string, trust: SharedTrust): void {
  for (const name of sharedFiles) {
    const path = join(pkiDir, name)
    const found = readIfExists(path)
    if (found === trust[name]) continue
    if (found !== undefined) {
      const problem = `${path} differs from that of the home partition`
      throw new ServerStartError(
        'KeysDiffer',
        `${problem}: use an empty data directory for a new partition, or the configuration it was created with`,
      )
    }
    writeSecretFile(path, trust[name])
  }
}

async function authorityOf(pkiDir: string, name: string, nowMs: number): Promise<Pair> {
  const found = readAuthority(pkiDir, name)
  return found && isValid(found.certificate, nowMs) ? found : await createAuthority(pkiDir, nowMs, name)
}
