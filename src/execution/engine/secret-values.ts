import type { Json } from '../../kubernetes/object/index.ts'

const minSecretLength = 4

/**
 * The texts to mask (invariant 9), longest first: every string in the named variables, also inside lists and objects.
 * Strings shorter than 4 characters, numbers and booleans are left out: masking them would garble the text around them.
 */
export function secretValues(variables: Record<string, Json>, sensitiveNames: readonly string[]): string[] {
  const found = new Set<string>()
  const visit = (value: Json | undefined): void => {
    if (typeof value === 'string') {
      if (value.length >= minSecretLength) found.add(value)
      for (const line of value.split('\n')) if (line.trim().length >= minSecretLength) found.add(line.trim())
    } else if (Array.isArray(value)) value.forEach(visit)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
  }
  for (const name of sensitiveNames) visit(variables[name])
  return [...found].sort((a, b) => b.length - a.length)
}

/** `text` with `***` in place of every secret, also where a secret is escaped in a JSON string. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text
  for (const secret of secrets) {
    masked = masked.replaceAll(secret, '***')
    const quoted = JSON.stringify(secret).slice(1, -1)
    if (quoted !== secret) masked = masked.replaceAll(quoted, '***')
  }
  return masked
}
