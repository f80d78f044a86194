import type { OutgoingHttpHeader } from 'node:http'
import type { AuditLog } from './audit-log.ts'
import { auditedObject } from './audited-object.ts'
import { captureBody } from './capture-body.ts'
import { type AuditLevel, type AuditPolicy, type AuditSubject, defaultPolicy, levelOf } from './policy.ts'

/** A response, as far as the audit log reads it. */
export type AuditedReply = {
  readonly statusCode: number
  audit?: { name?: string; body?: string } | undefined
  getHeader(name: string): OutgoingHttpHeader | undefined
  once(event: 'close', listener: () => void): unknown
  write: unknown
  end: unknown
  writeFramed?: unknown
}

export type AuditRequest = AuditSubject & {
  readonly user: { readonly name: string; readonly groups: readonly string[]; readonly uid?: string; readonly extra?: unknown }
  readonly uri: string
  readonly version: string
  readonly userAgent: string | undefined
  readonly address: string | undefined
}

/** Resources whose objects are never logged, whatever the policy says: they are secrets or contain one. */
const secretResources = new Set(['/secrets', '/serviceaccounts/token', 'authentication.k8s.io/tokenreviews'])

/** Writes an event for each request that the policy selects, when its response has ended: Kubernetes' stage ResponseComplete. */
export class Auditor {
  readonly #policy: AuditPolicy
  readonly #log: AuditLog
  /** False when no event is written for a read of a resource, which then costs nothing. */
  readonly auditsReads: boolean

  constructor(policy: AuditPolicy, log: AuditLog) {
    this.#policy = policy
    this.#log = log
    this.auditsReads = policy !== defaultPolicy
  }

  /** Call before the request is served. */
  begin(request: AuditRequest, reply: AuditedReply): void {
    const level = boundedLevel(levelOf(this.#policy, request), request)
    if (level === 'None') return
    const receivedMs = Date.now()
    const sent: { name?: string; body?: string } = {}
    reply.audit = sent
    const response = level === 'RequestResponse' ? captureBody(reply) : undefined
    reply.once('close', () => this.#log.append(JSON.stringify(eventOf(level, request, reply.statusCode, receivedMs, sent, response?.()))))
  }
}

function boundedLevel(level: AuditLevel, { resource, verb }: AuditRequest): AuditLevel {
  if (level === 'None' || level === 'Metadata') return level
  // States, logs and backups are no objects, and a watch has no end that its events could wait for.
  if (!resource || verb === 'watch') return 'Metadata'
  const { group, plural, subresource } = resource
  return secretResources.has(`${group}/${plural}`) || secretResources.has(`${group}/${plural}/${subresource}`) ? 'Metadata' : level
}

function eventOf(
  level: AuditLevel,
  { user, verb, uri, version, resource, userAgent, address }: AuditRequest,
  code: number,
  receivedMs: number,
  sent: { name?: string; body?: string },
  responseBody: { text: string; length: number } | undefined,
): object {
  const { name, groups, uid, extra } = user
  const requestObject = level === 'Metadata' ? undefined : auditedObject(sent.body)
  const responseObject = responseBody && auditedObject(responseBody.text, responseBody.length)
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level,
    auditID: crypto.randomUUID(),
    stage: 'ResponseComplete',
    requestURI: uri,
    verb,
    user: { username: name, uid, groups, extra },
    sourceIPs: address === undefined ? [] : [address],
    userAgent,
    objectRef: resource && {
      resource: resource.plural,
      namespace: resource.namespace || undefined,
      name: resource.name || sent.name,
      apiGroup: resource.group || undefined,
      apiVersion: version,
      subresource: resource.subresource || undefined,
    },
    // 0: the client disconnected before the response.
    responseStatus: code > 0 ? { metadata: {}, code } : undefined,
    requestObject: requestObject?.object,
    responseObject: responseObject?.object,
    requestReceivedTimestamp: microTime(receivedMs),
    stageTimestamp: microTime(Date.now()),
    annotations: annotationsOf(requestObject?.omitted, responseObject?.omitted),
  }
}

function annotationsOf(request: string | undefined, response: string | undefined): Record<string, string> | undefined {
  if (request === undefined && response === undefined) return undefined
  return {
    ...(request !== undefined && { 'audit.oarlock.dev/request-object': request }),
    ...(response !== undefined && { 'audit.oarlock.dev/response-object': response }),
  }
}

/** Kubernetes' MicroTime. */
const microTime = (ms: number) => `${new Date(ms).toISOString().slice(0, -1)}000Z`
