import { X509Certificate } from 'node:crypto'
import type { Log } from '../../kubernetes/controller/index.ts'

const dayMs = 24 * 3_600_000
const warnBeforeMs = 30 * dayMs

/** What to log of a certificate: undefined while it is valid for more than 30 days. */
export function expiryWarning(name: string, certificate: string, nowMs: number): string | undefined {
  const expiresMs = Date.parse(new X509Certificate(certificate).validTo)
  if (expiresMs - nowMs > warnBeforeMs) return undefined
  const when = new Date(expiresMs).toISOString().slice(0, 10)
  const problem = expiresMs <= nowMs ? `has expired on ${when}` : `expires on ${when}`
  return `the ${name} certificate of this gateway ${problem}: run "oarlock partition add-gateway" again, and restart the gateway with its file`
}

/** Logs at the start and every day which certificates, by name, expire soon. Returns a function that ends it. */
export function warnBeforeExpiry(certificates: Readonly<Record<string, string>>, log: Pick<Log, 'warn'>): () => void {
  const check = () => {
    for (const [name, certificate] of Object.entries(certificates)) {
      const warning = expiryWarning(name, certificate, Date.now())
      if (warning !== undefined) log.warn({ certificate: name }, warning)
    }
  }
  check()
  const timer = setInterval(check, dayMs).unref()
  return () => clearInterval(timer)
}
