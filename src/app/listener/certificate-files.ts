import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { AppStartError } from '../app-start-error.ts'

/** Paths of PEM files. */
export type CertificateFiles = {
  readonly certificate: string
  readonly key: string
  /** Authorities that clients find with the address. A file that is missing or empty means those of the system, as in a Secret of a public issuer. */
  readonly ca?: string | undefined
}

/** PEM. */
export type FileCertificate = { readonly certificate: string; readonly key: string; readonly ca: string | undefined }

/** @throws {AppStartError} if a file cannot be read, is not PEM, or the key is that of another certificate. */
export function readCertificateFiles({ certificate, key, ca }: CertificateFiles): FileCertificate {
  const files = {
    certificate: read('--tls-cert-file', certificate),
    key: read('--tls-private-key-file', key),
    ca: ca === undefined ? undefined : readIfPresent('--tls-ca-file', ca),
  }
  const parsed = parse(`--tls-cert-file ${certificate} must be a PEM certificate`, () => new X509Certificate(files.certificate))
  const privateKey = parse(`--tls-private-key-file ${key} must be a PEM key`, () => createPrivateKey(files.key))
  if (!parsed.checkPrivateKey(privateKey))
    throw new AppStartError('Listen', `--tls-private-key-file ${key} is not the key of --tls-cert-file ${certificate}`, undefined)
  if (files.ca !== undefined) parse(`--tls-ca-file ${ca} must be a PEM certificate`, () => new X509Certificate(files.ca as string))
  return files
}

/**
 * Reads the files again every `intervalMs`, and calls `onChange` with what they have. While the files do not belong together, as between two writes,
 * the last certificate is served. Returns a function that ends it.
 */
export function watchCertificateFiles(
  files: CertificateFiles,
  {
    current,
    intervalMs,
    onChange,
    onError,
  }: { current: FileCertificate; intervalMs: number; onChange(next: FileCertificate): void; onError(error: unknown): void },
): () => void {
  let served = current
  const timer = setInterval(() => {
    try {
      const next = readCertificateFiles(files)
      if (next.certificate === served.certificate && next.key === served.key && next.ca === served.ca) return
      onChange(next)
      served = next
    } catch (error) {
      onError(error)
    }
  }, intervalMs)
  timer.unref()
  return () => clearInterval(timer)
}

function read(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new AppStartError('Listen', `failed to read ${flag} ${path} (${(error as NodeJS.ErrnoException).code})`, undefined, error)
  }
}

function readIfPresent(flag: string, path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    return text.trim() === '' ? undefined : text
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new AppStartError('Listen', `failed to read ${flag} ${path} (${(error as NodeJS.ErrnoException).code})`, undefined, error)
  }
}

function parse<T>(problem: string, parsed: () => T): T {
  try {
    return parsed()
  } catch (error) {
    throw new AppStartError('Listen', problem, undefined, error)
  }
}
