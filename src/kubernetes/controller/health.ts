import { fullReason, type HealthReason, publicReason } from '../util/health-checks.ts'

/** The result of a check of a manager. */
export type Health = {
  ok: boolean
  /** For the log and the terminal of an operator: they contain texts of errors, which may name users and objects. */
  reasons: string[]
  /** The same without these texts, as `/livez` and `/readyz` show them to everyone who can connect. */
  publicReasons: string[]
}

/** The check passes if there are no reasons why it fails. */
export function healthOf(reasons: readonly HealthReason[]): Health {
  return { ok: reasons.length === 0, reasons: reasons.map(fullReason), publicReasons: reasons.map(publicReason) }
}
