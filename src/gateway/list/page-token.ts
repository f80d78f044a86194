import { createHmac, timingSafeEqual } from 'node:crypto'
import { badRequest, isJsonObject } from '../../kubernetes/object/index.ts'

/** Where a list over several partitions continues. */
export type PageToken = {
  /** The resource version that all pages show. */
  readonly version: number
  /** The partition of the next page, and the token of that partition; empty: from its start. */
  readonly partition: string
  readonly inner: string
  /** What the list is over (`partsKey`): it continues over the same partitions only. */
  readonly parts: string
  /** What was listed: path and selectors. A token continues only the same list. */
  readonly scope: string
}

const format = 'oarlock.dev/v2'

/** Signed, so that a client cannot make a gateway ask another partition for anything. Gateways that share the key read each other's tokens. */
export function writePageToken({ version, partition, inner, parts, scope }: PageToken, key: Uint8Array): string {
  const text = JSON.stringify({ v: format, rv: version, partition, inner, parts })
  return Buffer.from(JSON.stringify({ t: text, s: signatureOf(text, scope, key).toString('base64url') })).toString('base64url')
}

/** @throws {StatusError} BadRequest if it is not a token of this list, or not signed with the key. */
export function readPageToken(token: string, scope: string, key: Uint8Array): PageToken {
  let outer: unknown
  let inside: unknown
  try {
    outer = JSON.parse(Buffer.from(token, 'base64url').toString())
    inside = isJsonObject(outer) && typeof outer.t === 'string' ? JSON.parse(outer.t) : undefined
  } catch {
    // Reported below.
  }
  if (!isJsonObject(outer) || typeof outer.t !== 'string' || typeof outer.s !== 'string' || !isJsonObject(inside))
    throw invalid('it is not a token of the gateway')
  const wanted = signatureOf(outer.t, scope, key)
  const given = Buffer.from(outer.s, 'base64url')
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted))
    throw invalid('it belongs to a list of another path or with other selectors, or was changed')
  const { v, rv, partition, inner, parts } = inside
  if (v !== format || typeof rv !== 'number' || typeof partition !== 'string' || typeof inner !== 'string' || typeof parts !== 'string')
    throw invalid(`its version is ${JSON.stringify(v)}, this gateway reads ${format}: list again from the start`)
  return { version: rv, partition, inner, parts, scope }
}

function signatureOf(text: string, scope: string, key: Uint8Array): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([text, scope]))
    .digest()
}

const invalid = (why: string) => badRequest(`invalid continue token: continue key is not valid: ${why}`)
