import type { setDefaultCACertificates } from 'node:tls'

let areLeftOut = false

/**
 * For a process that names the certificate authority of every server it talks to: Node reads its own 120 root certificates, 8 ms, when
 * any authority is added to a TLS context. {@link readRootCertificates} brings them back. Only of this thread. Does nothing where
 * Node cannot (before 24.5), or was told which authorities are the default ones.
 */
export function leaveOutRootCertificates(): void {
  const set = process.getBuiltinModule('node:tls').setDefaultCACertificates as typeof setDefaultCACertificates | undefined
  const isTold = process.env.NODE_USE_SYSTEM_CA !== undefined || [process.env.NODE_OPTIONS, ...process.execArgv].some(hasOption)
  if (areLeftOut || isTold || set === undefined) return
  areLeftOut = true
  set([])
}

/** Called before a connection that trusts the default authorities: Node's own and those of NODE_EXTRA_CA_CERTS. */
export function readRootCertificates(): void {
  if (!areLeftOut) return
  areLeftOut = false
  const { getCACertificates, setDefaultCACertificates } = process.getBuiltinModule('node:tls')
  setDefaultCACertificates([...getCACertificates('bundled'), ...getCACertificates('extra')])
}

const hasOption = (text: string | undefined): boolean => /--use-\w+-ca\b/.test(text ?? '')
