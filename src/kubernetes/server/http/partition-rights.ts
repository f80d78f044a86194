import { badRequest, isJsonObject } from '../../object/index.ts'
import { readRoute } from '../../object/route.ts'
import { type Authorizer, authenticatedUser, type User } from '../auth/index.ts'
import { nextSlice } from '../fairness/index.ts'
import { type Reply, send } from '../wire/index.ts'
import type { HttpRequest } from './handler-types.ts'
import { readBody } from './read-body.ts'
import { attributesOf } from './resource-requests.ts'

const maxChecks = 1_000
const checksPerSlice = 100

/**
 * `POST /partition/rights` of a gateway, with `{"checks":[{"user":{"name","groups","uid","extra"},"url"}]}`: whether each user may send a GET of that URL now.
 * Answers `{"allowed":[…]}`, in the same order. One request for the watches of many users, because a gateway asks for each of them every few seconds.
 * @throws {StatusError} BadRequest.
 */
export async function serveRights(authorize: Authorizer, request: HttpRequest, response: Reply): Promise<void> {
  const bytes = await readBody(request)
  const checks = readChecks(bytes.toString())
  const allowed: boolean[] = []
  for (const [index, { user, url }] of checks.entries()) {
    if (index % checksPerSlice === checksPerSlice - 1) await nextSlice()
    const { pathname, searchParams: query } = new URL(url, 'https://partition')
    const route = readRoute(pathname)
    if (route.type === 'path') throw badRequest(`${JSON.stringify(url.slice(0, 80))} is no resource`)
    allowed.push(authorize(attributesOf({ route, query, user, request: { method: 'GET' } as HttpRequest })) === true)
  }
  send(response, 200, 'application/json', JSON.stringify({ allowed }))
}

function readChecks(text: string): { user: User; url: string }[] {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    throw badRequest('the body is not JSON')
  }
  const checks = isJsonObject(document) ? document.checks : undefined
  if (!Array.isArray(checks) || checks.length > maxChecks) throw badRequest(`checks must be a list of at most ${maxChecks}`)
  return checks.map(check => {
    if (!isJsonObject(check) || !isJsonObject(check.user) || typeof check.url !== 'string' || !check.url.startsWith('/'))
      throw badRequest('a check must have a user and a url')
    const { name, groups, uid, extra } = check.user as Partial<User>
    if (typeof name !== 'string' || name === '' || !Array.isArray(groups)) throw badRequest('a user must have a name and groups')
    return { user: { ...authenticatedUser(name, groups), ...(uid && { uid }), ...(extra && { extra }) }, url: check.url }
  })
}
