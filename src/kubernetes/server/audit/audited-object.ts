/** Longer bodies are not logged. */
export const maxAuditedLength = 256 * 1024

/** Kinds that are never logged, wherever a client sends them: the resource that a body is sent to need not be that of its kind. */
const secretKinds = /"kind":"(Secret|SecretList|TokenReview|TokenRequest)"/

/** The object of a body, or why it is omitted; undefined without a body. */
export function auditedObject(body: string | undefined, length = body?.length ?? 0): { object?: unknown; omitted?: string } | undefined {
  if (body === undefined || length === 0) return undefined
  if (length > maxAuditedLength) return { omitted: `longer than ${maxAuditedLength} characters` }
  try {
    const object: unknown = JSON.parse(body)
    // The text again: the kind may have been sent with escapes or spaces.
    return secretKinds.test(JSON.stringify(object)) ? { omitted: 'contains a Secret or a token' } : { object }
  } catch {
    return { omitted: 'not JSON' }
  }
}
