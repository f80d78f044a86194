import type { BackendTarget, QueryTarget } from './parse-state-request.ts'
import type { StateAccessRequest, StateVerb } from './state-handler.ts'

/** The token of a Stack allows every request on its state, so a user who gets it needs all verbs. */
const tokenVerbs: readonly StateVerb[] = ['get', 'update', 'delete']
/** Which rights on the Stack a path for users needs. */
export function requiredAccess(
  target: BackendTarget | QueryTarget,
  method: string,
): Pick<StateAccessRequest, 'subresource' | 'verbs' | 'requiresUser' | 'isPlanFile'> {
  if (target.kind === 'query') {
    // An old token gets no new one.
    if (target.resource === 'token') return { subresource: 'state', verbs: tokenVerbs, requiresUser: true }
    if (target.resource === 'fence' && method !== 'GET') return { subresource: 'fence', verbs: [verbOf(method)] }
    const verbs = [verbOf(method)]
    // It is recorded who accepts.
    if (target.resource === 'accept') return { subresource: 'state', verbs: ['update'], requiresUser: true }
    // As a state of Terraform, which has secrets in plain text. The audit log names who gets them.
    if (target.resource === 'decrypt') return { subresource: 'state', verbs: ['get'], requiresUser: true }
    // Nothing of the content: for the controllers, which cannot read states.
    if (target.resource === 'check') return { subresource: 'recovery', verbs }
    if (target.resource === 'diff') return { subresource: 'plan', verbs }
    return target.resource === 'plan' ? { subresource: 'plan', isPlanFile: true, verbs } : { subresource: 'state', verbs }
  }
  return { subresource: 'state', verbs: [verbOf(method)] }
}

const verbOf = (method: string): StateVerb => (method === 'GET' || method === 'HEAD' ? 'get' : method === 'DELETE' ? 'delete' : 'update')
