import type { IncomingMessage } from 'node:http'
import { StatusError } from '../../kubernetes/object/index.ts'
import { type AccessReviewer, forbiddenMessage } from './access-reviewer.ts'
import type { ReviewedUser } from './review-resources.ts'

/** The user for whom a request of `user` is. @throws {StatusError} Forbidden. Throws as {@link AccessReviewer.isAllowed} if the API server does not decide. */
export type Impersonate = (user: ReviewedUser, request: IncomingMessage) => Promise<ReviewedUser>

const serviceAccountPattern = /^system:serviceaccount:([^:]+):([^:]+)$/

/** Whether a request asks to be that of another user. */
export const isImpersonation = ({ headers }: IncomingMessage): boolean => Object.keys(headers).some(name => name.startsWith('impersonate-'))

/** As kube-apiserver: the user needs verb `impersonate` on the user or ServiceAccount, and on each group. */
export const impersonateByAccessReview =
  (access: AccessReviewer): Impersonate =>
  async (user, { headersDistinct }) => {
    const unsupported = Object.keys(headersDistinct).find(
      name => name.startsWith('impersonate-') && name !== 'impersonate-user' && name !== 'impersonate-group',
    )
    if (unsupported !== undefined)
      throw new StatusError('Forbidden', `${unsupported} is not supported: only users and groups can be impersonated`)
    const [name = ''] = namesIn(headersDistinct['impersonate-user'])
    const groups = namesIn(headersDistinct['impersonate-group'])
    if (name === '') throw new StatusError('Forbidden', 'impersonate-user is missing: groups are impersonated together with a user')
    const [, namespace, account] = serviceAccountPattern.exec(name) ?? []
    const needed = [
      account === undefined ? { resource: 'users', name } : { resource: 'serviceaccounts', namespace, name: account },
      ...groups.map(group => ({ resource: 'groups', name: group })),
    ]
    for (const right of needed) {
      const attributes = { verb: 'impersonate', group: '', ...right }
      if (!(await access.isAllowed(user, attributes))) throw new StatusError('Forbidden', forbiddenMessage(user, attributes))
    }
    const ofAccount = namespace === undefined || groups.length > 0 ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
    return { name, groups: [...new Set([...groups, ...ofAccount, 'system:authenticated'])] }
  }

/** Names are sent as UTF-8, of which Node makes one character per byte. @throws {StatusError} BadRequest. */
function namesIn(values: readonly string[] = []): string[] {
  return values.map(value => {
    try {
      return utf8.decode(Buffer.from(value, 'latin1'))
    } catch {
      throw new StatusError('BadRequest', `the impersonated name ${JSON.stringify(value.slice(0, 80))} is not UTF-8`)
    }
  })
}

/** Strict: a replacement character would make one name of many. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
