import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Log, yaml } from '../../util/index.ts'
import type { AuditStats } from './audit-log.ts'
import type { AuditRequest } from './auditor.ts'
import { type AuditOptions, openAudit } from './open-audit.ts'

/** The audit log of a listener that serves paths and no objects, such as that of stores which run apart. */
export type PathAudit = {
  readonly stats: AuditStats
  /** Call before the request of an authenticated user is served. */
  begin(request: IncomingMessage, response: ServerResponse, user: AuditRequest['user']): void
  close(): Promise<void>
}

/** @throws {ServerStartError} AuditInvalid, with the flag to change. */
export function openPathAudit(options: AuditOptions, log: Log): PathAudit {
  const audit = openAudit(options, text => yaml().parse(text), log)
  return {
    get stats() {
      return audit.log.stats
    },
    begin: ({ method = 'GET', url = '/', headers, socket }, response, user) =>
      audit.auditor.begin(
        {
          user,
          verb: method.toLowerCase(),
          path: url.split('?', 1)[0] ?? '/',
          uri: url,
          version: '',
          resource: undefined,
          userAgent: headers['user-agent'],
          address: socket.remoteAddress,
        },
        response,
      ),
    close: () => audit.log.close(),
  }
}
