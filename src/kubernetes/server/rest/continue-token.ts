import { badRequest, isJsonObject, type StatusError } from '../../object/index.ts'

/** The position at which a list continues, in Kubernetes' format, so that its clients and tools can read it; `snapshot` is an addition. */
export type ContinueToken = {
  /** The revision that all pages show; -1 for a list that continues with the current objects. */
  readonly revision: number
  /** The smallest key of the next page; without the namespace when the list is of one namespace. */
  readonly start: string
  /** The id of the stored snapshot that the first page came from. */
  readonly snapshot: string | undefined
}

const version = 'meta.k8s.io/v1'

export function writeContinueToken({ revision, start, snapshot }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: version, rv: revision, start, ...(snapshot && { snapshot }) })).toString('base64url')
}

/** @throws {StatusError} BadRequest for an invalid token. */
export function readContinueToken(text: string): ContinueToken {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    // Reported below.
  }
  if (!isJsonObject(value)) throw invalid(JSON.stringify(text.slice(0, 80)))
  const { v, rv, start, snapshot } = value
  if (v !== version) throw invalid(`server does not recognize this encoded version ${String(v).slice(0, 80)}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0) {
    throw invalid(`incorrect encoded start resourceVersion (version ${version})`)
  }
  if (typeof start !== 'string' || start === '') throw invalid(`encoded start key empty (version ${version})`)
  return { revision: rv, start, snapshot: typeof snapshot === 'string' ? snapshot : undefined }
}

/** The smallest key after the key of an entry, in the list of a namespace or of all namespaces. */
export function keyAfter(key: string, namespace: string): string {
  return `${namespace ? key.slice(namespace.length + 1) : key}\0`
}

function invalid(why: string): StatusError {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`)
}
