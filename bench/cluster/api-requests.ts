import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** A request that kube-apiserver has completed. */
export type ApiRequest = {
  readonly user: string
  readonly verb: string
  /** `resource` or `resource/subresource`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly code: number
  readonly userAgent: string
  readonly receivedMs: number
}

type AuditEvent = {
  user: { username: string }
  verb: string
  objectRef?: { resource?: string; subresource?: string; namespace?: string; name?: string }
  responseStatus?: { code?: number }
  userAgent?: string
  requestReceivedTimestamp: string
}

/** Reads the audit log of a kube-apiserver. */
export async function* readAuditLog(path: string): AsyncGenerator<ApiRequest> {
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line === '') continue
    const { user, verb, objectRef = {}, responseStatus, userAgent = '', requestReceivedTimestamp } = JSON.parse(line) as AuditEvent
    const { resource = '', subresource, namespace = '', name = '' } = objectRef
    yield {
      ...{ user: user.username, verb, resource: subresource ? `${resource}/${subresource}` : resource, namespace, name, userAgent },
      code: responseStatus?.code ?? 0,
      receivedMs: Date.parse(requestReceivedTimestamp),
    }
  }
}

const writeVerbs = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])
export const isWrite = ({ verb }: ApiRequest): boolean => writeVerbs.has(verb)

/** What sends requests, by its user: the parts of Oarlock, those of Kubernetes, and the bench itself. */
export function senderOf({
  user,
}: ApiRequest): 'controllers' | 'workers' | 'other Oarlock' | 'scheduler' | 'kube-controller-manager' | 'kwok' | 'other' {
  if (user === 'system:serviceaccount:oarlock-system:oarlock-controller') return 'controllers'
  if (/^system:serviceaccount:[^:]+:oarlock-worker(-[^:]*)?$/.test(user)) return 'workers'
  if (user.startsWith('system:serviceaccount:oarlock-')) return 'other Oarlock'
  if (user === 'system:kube-scheduler') return 'scheduler'
  if (user === 'system:kube-controller-manager' || user.startsWith('system:serviceaccount:kube-system:')) return 'kube-controller-manager'
  return user === 'kwok' ? 'kwok' : 'other'
}
