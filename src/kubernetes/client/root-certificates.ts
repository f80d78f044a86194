import type { setDefaultCACertificates } from 'node:tls'

let areSkipped = false

/**
 * For a process that configures the certificate authority of every server: Node parses its own 120 root certificates (8 ms)
 * when any authority is added to a TLS context. {@link restoreBundledRootCertificates} restores them. Affects this thread only. Has
 * no effect where Node lacks support (before 24.5), or where the default authorities are configured by an option.
 */
export function disableBundledRootCertificates(): void {
  const set = process.getBuiltinModule('node:tls').setDefaultCACertificates as typeof setDefaultCACertificates | undefined
  const isConfigured = process.env.NODE_USE_SYSTEM_CA !== undefined || [process.env.NODE_OPTIONS, ...process.execArgv].some(hasOption)
  if (areSkipped || isConfigured || set === undefined) return
  areSkipped = true
  set([])
}

/** Called before a connection that trusts the default authorities: those of Node and of NODE_EXTRA_CA_CERTS. */
export function restoreBundledRootCertificates(): void {
  if (!areSkipped) return
  areSkipped = false
  const { getCACertificates, setDefaultCACertificates } = process.getBuiltinModule('node:tls')
  setDefaultCACertificates([...getCACertificates('bundled'), ...getCACertificates('extra')])
}

const hasOption = (text: string | undefined): boolean => /--use-\w+-ca\b/.test(text ?? '')
