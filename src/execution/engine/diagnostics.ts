/** A message of an engine about the configuration. `file` is relative to the source, `line` starts at 1. Secret values are already masked. */
export type Diagnostic = {
  severity: 'error' | 'warning'
  summary: string
  detail?: string
  file?: string
  line?: number
}

/** The longest error message that goes into a status, in characters. */
const maxMessageLength = 2_000

/**
 * One or two sentences for a condition: the first error in full with its location, and the number of further errors.
 * Returns `fallback` when `diagnostics` has no error.
 */
export function describeDiagnostics(diagnostics: readonly Diagnostic[], fallback: string): string {
  const errors = diagnostics.filter(({ severity }) => severity === 'error')
  const [first] = errors
  if (!first) return truncate(fallback)
  const detail = first.detail?.trim().replace(/\s*\n\s*/g, ' ')
  const location = first.file ? ` (${first.file}${first.line === undefined ? '' : ` line ${first.line}`})` : ''
  const more = errors.length > 1 ? `; ${errors.length - 1} more error${errors.length > 2 ? 's' : ''}, see the log` : ''
  const summary = first.summary.trim().replace(/\s*\n\s*/g, ' ')
  return `${truncate(detail ? `${summary}: ${detail}` : summary)}${location}${more}`
}

function truncate(text: string): string {
  return text.length > maxMessageLength ? `${text.slice(0, maxMessageLength - 1)}…` : text
}
