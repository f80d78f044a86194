import { badRequest, isJsonObject, type StatusError } from '../../object/index.ts'

/** Where a list goes on: the form is Kubernetes', so that its clients and tools can read it; `snapshot` is ours. */
export type ContinueToken = {
  /** The revision that all pages show; -1 for a list that goes on with what is there now. */
  readonly revision: number
  /** The smallest key that may come next; below the namespace when the list is of one. */
  readonly start: string
  /** Which kept snapshot the first page came from. */
  readonly snapshot: string | undefined
}

const version = 'meta.k8s.io/v1'

export function writeContinueToken({ revision, start, snapshot }: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: version, rv: revision, start, ...(snapshot && { snapshot }) })).toString('base64url')
}

/** @throws {StatusError} BadRequest for what no server wrote. */
export function readContinueToken(text: string): ContinueToken {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    // Said below, with everything else that is no token.
  }
  if (!isJsonObject(value)) throw refuse(JSON.stringify(text.slice(0, 80)))
  const { v, rv, start, snapshot } = value
  if (v !== version) throw refuse(`server does not recognize this encoded version ${String(v).slice(0, 80)}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0) {
    throw refuse(`incorrect encoded start resourceVersion (version ${version})`)
  }
  if (typeof start !== 'string' || start === '') throw refuse(`encoded start key empty (version ${version})`)
  return { revision: rv, start, snapshot: typeof snapshot === 'string' ? snapshot : undefined }
}

/** The smallest key behind that of an entry: of the list of a namespace, or of all. */
export function keyAfter(key: string, namespace: string): string {
  return `${namespace ? key.slice(namespace.length + 1) : key}\0`
}

function refuse(why: string): StatusError {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`)
}
