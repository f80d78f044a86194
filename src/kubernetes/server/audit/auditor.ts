import type { OutgoingHttpHeader } from 'node:http'
import { truncateText } from '../../util/index.ts'
import type { AuditLog } from './audit-log.ts'
import { auditedObject } from './audited-object.ts'
import { captureBody, captureDenial } from './capture-body.ts'
import { type AuditLevel, type AuditPolicy, type AuditSubject, defaultPolicy, levelOf } from './policy.ts'

/** What the audit log records and is known later than the request. */
export type AuditDetails = {
  /** Of a created object. */
  name?: string
  /** Of the request. */
  body?: string
  /** Why the response is 403. */
  denial?: string
  annotations?: Record<string, string>
}

/** A response, as far as the audit log reads it. */
export type AuditedReply = {
  readonly statusCode: number
  audit?: AuditDetails | undefined
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
  readonly #hasDefaultPolicy: boolean

  constructor(policy: AuditPolicy, log: AuditLog) {
    this.#policy = policy
    this.#log = log
    this.#hasDefaultPolicy = policy === defaultPolicy
  }

  /** False when no event is written for a read of this resource, which then costs nothing. */
  auditsReadsOf(plural: string): boolean {
    return !this.#hasDefaultPolicy || plural === 'secrets'
  }

  /** Call before the request is served. */
  begin(request: AuditRequest, reply: AuditedReply): void {
    const level = boundedLevel(levelOf(this.#policy, request), request)
    if (level === 'None') return
    const receivedMs = Date.now()
    const details: AuditDetails = {}
    reply.audit = details
    if (!request.resource) captureDenial(reply, details)
    const response = level === 'RequestResponse' ? captureBody(reply) : undefined
    reply.once('close', () =>
      this.#log.append(JSON.stringify(eventOf(level, request, reply.statusCode, receivedMs, details, response?.()))),
    )
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
  details: AuditDetails,
  responseBody: { text: string; length: number } | undefined,
): object {
  const { name, groups, uid, extra } = user
  const requestObject = level === 'Metadata' ? undefined : auditedObject(details.body)
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
      name: resource.name || details.name,
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
    annotations: annotationsOf(details, requestObject?.omitted, responseObject?.omitted),
  }
}

function annotationsOf(
  { denial, annotations }: AuditDetails,
  request: string | undefined,
  response: string | undefined,
): Record<string, string> | undefined {
  if (denial === undefined && annotations === undefined && request === undefined && response === undefined) return undefined
  return {
    ...annotations,
    // The annotations of kube-apiserver. Here the rules of admission plugins are rights, too.
    ...(denial !== undefined && {
      'authorization.k8s.io/decision': 'forbid',
      'authorization.k8s.io/reason': truncateText(denial, maxReasonLength),
    }),
    ...(request !== undefined && { 'audit.oarlock.dev/request-object': request }),
    ...(response !== undefined && { 'audit.oarlock.dev/response-object': response }),
  }
}

/** A reason may quote what the client sent. */
const maxReasonLength = 1_000

/** Kubernetes' MicroTime. */
const microTime = (ms: number) => `${new Date(ms).toISOString().slice(0, -1)}000Z`
