import { randomUUID } from 'node:crypto'
import type { Client } from '../client/index.ts'
import { type ReconcileRequest, silentLog } from '../controller/index.ts'
import { type KubeObject, objectKey, parseKey } from '../object/index.ts'

/**
 * The argument of a reconcile, for a test that calls it without a manager:
 * `await reconcile(reconcileRequest({ client, object: await client.resource(boatResource).get('a') }))`. For a deleted object
 * pass its `key` only. Any field of the request may be passed; defaults: first attempt, no cluster, a signal that never
 * aborts, a silent log.
 */
export function reconcileRequest<Body>(
  parts: { client: Client; object?: KubeObject<Body> | undefined; key?: string | undefined } & Partial<ReconcileRequest<Body>>,
): ReconcileRequest<Body> {
  const { object, client, key = object && objectKey(object) } = parts
  if (!key) throw new TypeError('reconcileRequest requires an object, or the key of a deleted one')
  return {
    cluster: undefined,
    signal: new AbortController().signal,
    isLeading: () => true,
    log: silentLog,
    attempt: 0,
    reconcileId: randomUUID(),
    ...parts,
    ...parseKey(key),
    object,
    client,
    key,
  }
}
