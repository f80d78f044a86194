import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Why a check fails. The detail may name users, objects and addresses, as the error of a server does: it is for the log and the terminal of an operator,
 * and {@link publicReason} omits it.
 */
export type HealthReason = string | { readonly reason: string; readonly detail: string | Error }

/** The reason with its detail. */
export function fullReason(reason: HealthReason): string {
  if (typeof reason === 'string') return reason
  return `${reason.reason}: ${typeof reason.detail === 'string' ? reason.detail : reason.detail.message}`
}

/** The reason for everyone who can connect. Of a server's error it has the machine-readable reason, such as `Forbidden`, and never the text. */
export function publicReason(reason: HealthReason): string {
  if (typeof reason === 'string') return reason
  const code = typeof reason.detail === 'object' && 'reason' in reason.detail ? reason.detail.reason : undefined
  return typeof code === 'string' && /^[A-Z][A-Za-z]{1,40}$/.test(code) ? `${reason.reason} (${code})` : reason.reason
}

/**
 * Each returns the reasons why the process fails the check; empty if it passes. They are shown without authentication: see {@link publicReason}.
 */
export type HealthChecks = {
  livez(): readonly string[]
  readyz(): readonly string[]
  /** Undefined: `/startupz` is not served. */
  startupz?(): readonly string[]
}

/** Responds to `/livez`, `/healthz` (its older name), `/readyz` and `/startupz`: 200 and `ok`, or 503 and a line for each reason. Returns false for another path. */
export function respondToHealthCheck(checks: HealthChecks, { method, url = '' }: IncomingMessage, response: ServerResponse): boolean {
  const reasons = reasonsOf(checks, url.split('?', 1)[0])
  if (!reasons) return false
  const isRead = method === 'GET' || method === 'HEAD'
  const [status, text] = !isRead ? [405, 'method not allowed: use GET'] : reasons.length === 0 ? [200, 'ok'] : [503, reasons.join('\n')]
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...(!isRead && { Allow: 'GET, HEAD' }),
  })
  response.end(`${text}\n`)
  return true
}

function reasonsOf(checks: HealthChecks, path: string | undefined): readonly string[] | undefined {
  switch (path) {
    case '/livez':
    case '/healthz':
      return checks.livez()
    case '/readyz':
      return checks.readyz()
    case '/startupz':
      return checks.startupz?.()
    default:
      return undefined
  }
}
