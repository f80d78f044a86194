import { badRequest, conflict, invalid, invalidValue, isJsonObject, notFound, rfc3339, type StatusCause } from '../../object/index.ts'
import type { Reference, ServiceAccountGrant, ServiceAccountTokens } from '../auth/index.ts'
import { tokenRequestKind } from '../registry/index.ts'
import type { Call, Decoded } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEntry } from '../storage/index.ts'
import { objectIn, textIn, textsIn } from './review-fields.ts'

const defaultExpirationSeconds = 3_600
const minExpirationSeconds = 600
const maxExpirationSeconds = 2 ** 32

type Bound = Pick<ServiceAccountGrant, 'pod' | 'secret' | 'node'>

/**
 * Issues a token for the ServiceAccount of `call`, bound to a Pod, Secret or Node if requested.
 * @throws {StatusError} NotFound, Invalid, Conflict for another UID, BadRequest for an object that a token cannot be bound to.
 */
export function requestToken(
  { target: { name, namespace } }: Call,
  { object, sent }: Decoded,
  { store, serviceAccounts }: { store: Store; serviceAccounts: ServiceAccountTokens },
): Record<string, unknown> {
  validateMetadata(name, namespace, sent)
  const account = store.table('serviceaccounts').get(`${namespace}/${name}`)
  if (!account) throw notFound({ group: '', plural: 'serviceaccounts' }, name)
  if (sent.uid && sent.uid !== account.uid) {
    const reason = `the UID in the token request (${sent.uid}) does not match the UID of the service account (${account.uid})`
    throw conflict({ group: tokenRequestKind.group, plural: tokenRequestKind.kind }, name, reason)
  }
  const spec = objectIn(object.spec)
  const requested = textsIn(spec.audiences)
  const audiences = requested.length > 0 ? requested : serviceAccounts.audiences
  const expirationSeconds = typeof spec.expirationSeconds === 'number' ? spec.expirationSeconds : defaultExpirationSeconds
  validateExpiration(expirationSeconds)
  const boundObjectRef = isJsonObject(spec.boundObjectRef) ? spec.boundObjectRef : null
  const bound = boundObjectRef ? boundObject(store, name, namespace, boundObjectRef) : {}
  const { nowMs } = store
  const token = serviceAccounts.issue({ namespace, account: referenceTo(account), ...bound, audiences, expirationSeconds }, nowMs)
  return {
    metadata: { name, namespace, uid: account.uid, creationTimestamp: rfc3339(nowMs) },
    spec: { audiences, expirationSeconds, boundObjectRef },
    status: { token, expirationTimestamp: rfc3339(nowMs + expirationSeconds * 1_000) },
  }
}

function validateMetadata(name: string, namespace: string, sent: Decoded['sent']): void {
  const causes: StatusCause[] = []
  if (sent.name && sent.name !== name) {
    causes.push(invalidValue('metadata.name', sent.name, 'must match the service account name if specified'))
  } else if (sent.namespace && sent.namespace !== namespace) {
    causes.push(invalidValue('metadata.namespace', sent.namespace, 'must match the service account namespace if specified'))
  }
  if (causes.length > 0) throw invalid(tokenRequestKind, name, causes)
}

function validateExpiration(seconds: number): void {
  const reject = (reason: string) => invalid(tokenRequestKind, '', [invalidValue('spec.expirationSeconds', seconds, reason)])
  if (seconds < minExpirationSeconds) throw reject('may not specify a duration less than 10 minutes')
  if (seconds > maxExpirationSeconds) throw reject('may not specify a duration larger than 2^32 seconds')
}

function boundObject(store: Store, accountName: string, namespace: string, reference: Record<string, unknown>): Bound {
  const { apiVersion = '', kind = '', name: boundName, uid } = reference
  const name = textIn(boundName)
  const what = apiVersion === 'v1' ? kind : ''
  const find = (plural: string, key: string): StoredEntry => {
    const entry = store.table(plural).get(key)
    if (!entry) throw notFound({ group: '', plural }, name)
    return entry
  }
  const same = (entry: StoredEntry): StoredEntry => {
    if (!uid || uid === entry.uid) return entry
    const reason = `the UID in the bound object reference (${textIn(uid)}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict({ group: '', plural: textIn(kind) }, name, reason)
  }
  switch (what) {
    case 'Secret':
      return { secret: referenceTo(same(find('secrets', `${namespace}/${name}`))) }
    case 'Node':
      return { node: referenceTo(same(find('nodes', name))) }
    case 'Pod': {
      const entry = find('pods', `${namespace}/${name}`)
      const { serviceAccountName, nodeName } = objectIn(parseEntry(entry).spec)
      if (textIn(serviceAccountName) !== accountName) {
        throw badRequest(
          `cannot bind token for serviceaccount ${JSON.stringify(accountName)} to pod running with different serviceaccount name.`,
        )
      }
      const node = textIn(nodeName)
      return { pod: referenceTo(same(entry)), ...(node && { node: { name: node, uid: store.table('nodes').get(node)?.uid ?? '' } }) }
    }
    default: {
      const [group, version] = textIn(apiVersion).includes('/') ? textIn(apiVersion).split('/') : ['', textIn(apiVersion)]
      throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${textIn(kind)}`)
    }
  }
}

function referenceTo({ name, uid }: StoredEntry): Reference {
  return { name, uid }
}
