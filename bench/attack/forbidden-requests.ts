import type { Control } from './attack.ts'
import type { SendOptions } from './send-request.ts'
import type { Target } from './target.ts'

export type ForbiddenRequest = {
  /** What it would gain. */
  what: string
  method: string
  path: string
  options?: Omit<SendOptions, 'token'>
  /** The control: the credential that the request is meant for, by default that of the operator, and options that differ. */
  allowed?: SendOptions
}

/** Sends each request with the token, and for the control with that of its owner: the answer must be another one. Returns what was gained. */
export async function sendForbidden(
  target: Target,
  token: string | undefined,
  requests: readonly ForbiddenRequest[],
  control?: Control,
): Promise<string[]> {
  const gained: string[] = []
  for (const { what, method, path, options, allowed } of requests) {
    const { status, text } = await target.send(method, path, { ...options, token })
    if (status < 400) gained.push(what)
    gained.push(...target.secretsIn(text))
    if (!control) continue
    const answer = await target.send(method, withoutEffect(method, path), { ...options, token: target.operatorToken, ...allowed })
    const isOther = answer.status < 400 || (answer.status !== status && answer.status < 500 && answer.status !== 429)
    control(isOther, `${method} ${path} is answered with ${status}, and with ${answer.status} to whom may send it`)
  }
  return gained
}

/** The objects of the API server are needed for further attacks. */
function withoutEffect(method: string, path: string): string {
  const isWrite = method !== 'GET' && path.startsWith('/api') && !path.includes('dryRun=')
  return isWrite ? `${path}${path.includes('?') ? '&' : '?'}dryRun=All` : path
}
