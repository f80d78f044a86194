import type { ReviewedUser } from '../delegated-auth/review-resources.ts'

/** Whom kube-apiserver's requests name as their user, and by which certificate kube-apiserver is recognized. */
export type FrontProxyConfig = {
  /** PEM of the authority of kube-apiserver's client certificate. It must issue no other certificates: a client that has one can name any user. */
  readonly clientCa: string
  /** Common names of the certificate; empty: any. */
  readonly allowedNames: readonly string[]
  /** In lower case. */
  readonly userHeaders: readonly string[]
  readonly groupHeaders: readonly string[]
  readonly uidHeaders: readonly string[]
  readonly extraPrefixes: readonly string[]
}

/**
 * The part of ConfigMap `kube-system/extension-apiserver-authentication` that kube-apiserver keeps for aggregated APIs; undefined if it was
 * started without a requestheader CA and aggregates no API.
 * @throws {Error} if a value is malformed: nothing is authenticated by a setting that is not understood.
 */
export function frontProxyConfig(data: Readonly<Record<string, string>> | undefined): FrontProxyConfig | undefined {
  const clientCa = data?.['requestheader-client-ca-file']
  if (!clientCa?.trim()) return undefined
  const list = (key: string): string[] => {
    const text = data?.[key]
    if (!text) return []
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      value = undefined
    }
    if (Array.isArray(value) && value.every(each => typeof each === 'string')) return value
    throw new Error(`${key} of ConfigMap kube-system/extension-apiserver-authentication must be a JSON list of strings`)
  }
  const headers = (key: string) => list(key).map(name => name.toLowerCase())
  return {
    clientCa,
    allowedNames: list('requestheader-allowed-names'),
    userHeaders: headers('requestheader-username-headers'),
    groupHeaders: headers('requestheader-group-headers'),
    uidHeaders: headers('requestheader-uid-headers'),
    extraPrefixes: headers('requestheader-extra-headers-prefix'),
  }
}

/** Headers by their lower-case names, with each value of a repeated one: `headersDistinct` of node:http. A group may contain a comma. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

/**
 * The user that the headers name; undefined if they may not, or name none.
 * @param commonName of a client certificate that was verified with `clientCa`; undefined: there is none.
 */
export function frontProxyUser(
  { allowedNames, userHeaders, groupHeaders, uidHeaders, extraPrefixes }: FrontProxyConfig,
  commonName: string | undefined,
  headers: DistinctHeaders,
): ReviewedUser | undefined {
  if (commonName === undefined || (allowedNames.length > 0 && !allowedNames.includes(commonName))) return undefined
  const first = (names: readonly string[]) => names.map(name => headers[name]?.[0]).find(value => value !== undefined && value !== '')
  const name = first(userHeaders)
  if (name === undefined) return undefined
  const groups = groupHeaders.flatMap(header => headers[header] ?? [])
  const uid = first(uidHeaders)
  const extra: Record<string, readonly string[]> = Object.create(null)
  for (const [header, values = []] of Object.entries(headers)) {
    const prefix = extraPrefixes.find(each => header.startsWith(each) && header.length > each.length)
    if (prefix !== undefined) extra[decodeKey(header.slice(prefix.length))] = values
  }
  return { name, groups, ...(uid && { uid }), ...(Object.keys(extra).length > 0 && { extra }) }
}

/** Keys are percent-encoded: a header cannot contain the slash of `authentication.kubernetes.io/pod-name`. */
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text).toLowerCase()
  } catch {
    return text
  }
}
