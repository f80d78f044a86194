import type { Json } from '../../kubernetes/object/index.ts'

const shortestSecret = 4

/**
 * The texts that must not be seen (invariant 9), longest first: every string in the variables named, also inside lists and objects.
 * Values shorter than 4 characters are left out, as hiding them would hide everything; so are numbers and booleans.
 */
export function secretValues(variables: Record<string, Json>, sensitiveNames: readonly string[]): string[] {
  const found = new Set<string>()
  const visit = (value: Json | undefined): void => {
    if (typeof value === 'string') {
      if (value.length >= shortestSecret) found.add(value)
      for (const line of value.split('\n')) if (line.trim().length >= shortestSecret) found.add(line.trim())
    } else if (Array.isArray(value)) value.forEach(visit)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit)
  }
  for (const name of sensitiveNames) visit(variables[name])
  return [...found].sort((a, b) => b.length - a.length)
}

/** `text` with every secret, also as it looks inside a JSON string, replaced by `***`. */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  let masked = text
  for (const secret of secrets) {
    masked = masked.replaceAll(secret, '***')
    const quoted = JSON.stringify(secret).slice(1, -1)
    if (quoted !== secret) masked = masked.replaceAll(quoted, '***')
  }
  return masked
}
