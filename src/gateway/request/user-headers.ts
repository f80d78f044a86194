import { StatusError } from '../../kubernetes/object/index.ts'

/** Whom the gateway has authenticated. */
export type GatewayUser = {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string | undefined
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

/** Whom the gateway is itself: it reads the map, and asks partitions about users. Who has its certificate can be any user anyway. */
export const gatewayUser: GatewayUser = { name: 'system:oarlock:gateway', groups: ['system:masters', 'system:authenticated'] }

/** Whom limits count what needs no credential for. */
export const anonymousUser: GatewayUser = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

const printable = /^[\x20-\x7e]*$/

/** A user is the same object from request to request of its connection, or while its token is not reviewed again. */
const headersOfUsers = new WeakMap<GatewayUser, Readonly<Record<string, string | string[]>>>()

/**
 * The headers by which a partition learns who sent a request (`X-Remote-*`, as kube-apiserver's `--requestheader-*` options).
 * @throws {StatusError} Forbidden for a name that a header cannot carry: with it the user would be another one.
 */
export function userHeaders(user: GatewayUser): Readonly<Record<string, string | string[]>> {
  let headers = headersOfUsers.get(user)
  if (!headers) {
    headers = makeHeaders(user)
    headersOfUsers.set(user, headers)
  }
  return headers
}

function makeHeaders({ name, groups, uid, extra = {} }: GatewayUser): Record<string, string | string[]> {
  for (const text of [name, ...groups, uid ?? '']) if (!printable.test(text) || text !== text.trim()) throw unsendable(text)
  for (const group of groups) if (group.includes(',')) throw unsendable(group)
  // A header for each: kube-apiserver does not split them at commas.
  const headers: Record<string, string | string[]> = { 'x-remote-user': name, 'x-remote-group': [...groups] }
  if (uid) headers['x-remote-uid'] = uid
  for (const [key, values] of Object.entries(extra)) headers[`x-remote-extra-${encodeKey(key)}`] = values.map(encodeValue)
  return headers
}

/** Only if it must be: kube-apiserver takes a value as it is. */
const encodeValue = (value: string) => (/^[\x21-\x7e]+$/.test(value) && !/[,%]/.test(value) ? value : encodeURIComponent(value))

/** A header name has no upper case that is kept. */
const encodeKey = (key: string) =>
  [...Buffer.from(key)]
    .map(byte => {
      const character = String.fromCharCode(byte)
      return /[a-z0-9_.-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
    })
    .join('')

const unsendable = (text: string) =>
  new StatusError(
    'Forbidden',
    `the name ${JSON.stringify(text.slice(0, 80))} of a user or group cannot be sent to a partition: use printable ASCII, and no comma in groups`,
  )
