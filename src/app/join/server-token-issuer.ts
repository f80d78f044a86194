import type { ApiServer } from '../../kubernetes/server/index.ts'
import { joinedGroup, poolGroup, workersGroup, workerUserName } from '../worker-identity.ts'
import type { IssueCredential } from './join-service.ts'

/** Issues the credentials of workers as signed tokens of an embedded API server in the same process. */
export const serverTokenIssuer =
  (server: Pick<ApiServer, 'issueToken'>, nowMs: () => number = Date.now): IssueCredential =>
  async ({ worker, pool, hasJoined, ttlMs, record: { metadata } }) => {
    const boundTo = { namespace: metadata.namespace ?? '', name: metadata.name, uid: metadata.uid }
    const groups = [workersGroup, ...(hasJoined ? [joinedGroup] : []), poolGroup(pool)]
    const expiresAtMs = nowMs() + ttlMs
    return { credential: server.issueToken({ name: workerUserName(worker), groups, ttlMs, boundTo }), expiresAtMs }
  }
