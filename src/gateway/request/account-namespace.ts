/** The namespace that the token of a ServiceAccount claims: which partition is asked follows from it, and nothing else. Undefined: another token. */
export function accountNamespace(token: string): string | undefined {
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  try {
    const { sub } = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString()) as { sub?: unknown }
    return typeof sub === 'string' ? /^system:serviceaccount:([^:]+):/.exec(sub)?.[1] : undefined
  } catch {
    return undefined
  }
}
