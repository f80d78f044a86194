import type { Client } from '../../kubernetes/client/index.ts'
import { type Controller, controller } from '../../kubernetes/controller/index.ts'
import { isReason, type KubeObject, type Resource } from '../../kubernetes/object/index.ts'
import { copyAnnotations, decideCopy, decideReport } from './decide-copy.ts'

type Body = Record<string, unknown>

const notEstablishedRetryMs = 500
const fieldManager = 'oarlock-replication'

export type ReplicationOptions = {
  /** Of this partition: where copies are written. */
  readonly local: Client
  /** Name of this partition: what it reports to home about definitions. Default: nothing is reported. */
  readonly partition?: string | undefined
  /** Cluster-scoped kinds, in the order in which they depend on each other: CRDs first. */
  readonly kinds: readonly Resource<Body>[]
}

/**
 * Controllers, for a manager whose client is that of home, that keep copies of its objects in this partition. A change of a copy is overwritten with
 * the next change at home; while home is down the copies stay as they are.
 */
export function replication({ local, partition, kinds }: ReplicationOptions): Controller[] {
  return kinds.map(kind =>
    controller<Body>({
      name: `replication-${kind.plural}`,
      for: kind,
      backoff: { baseDelayMs: 50, maxDelayMs: 10_000 },
      reconcile: async ({ name, object, client, signal }) => {
        const copies = local.resource(kind)
        let copy = await copies.getOrUndefined(name, { signal })
        const decision = decideCopy(object, copy)
        if (decision.kind === 'create') copy = await copies.create(decision.object, { fieldManager, signal })
        else if (decision.kind === 'update') {
          const old = copy
          copy = await copies.update(decision.object, { fieldManager, signal }).catch(async error => {
            if (!isReason(error, 'Invalid') || !mayReplace(kind, old)) throw error
            // It was deleted and created again at home, with other immutable fields.
            await copies.delete(name, { preconditions: { uid: old.metadata.uid }, signal })
            const replacement = decideCopy(object, undefined)
            return replacement.kind === 'create' ? await copies.create(replacement.object, { fieldManager, signal }) : undefined
          })
        } else if (decision.kind === 'delete') {
          await copies.delete(name, { preconditions: { uid: decision.uid }, signal }).catch(error => {
            if (!isReason(error, 'NotFound', 'Conflict')) throw error
          })
        }
        if (kind.kind !== 'CustomResourceDefinition' || partition === undefined || !object || !copy || decision.kind === 'delete') return
        const report = decideReport(object, copy, partition)
        if (report.kind === 'wait') return { requeueAfterMs: notEstablishedRetryMs }
        if (report.kind !== 'report') return
        const metadata = { uid: object.metadata.uid, annotations: report.annotations }
        await client.resource(kind).patch(name, { metadata } as object, { type: 'merge', signal })
      },
    }),
  )
}

/** Whether a copy can be deleted to be created again. Not that of a definition: all objects of its kind would be deleted. */
function mayReplace(kind: Resource<Body>, copy: KubeObject<unknown> | undefined): copy is KubeObject<unknown> {
  return kind.kind !== 'CustomResourceDefinition' && copy?.metadata.annotations?.[copyAnnotations.homeVersion] !== undefined
}

/** Reconciles copies whose object home has deleted while nothing replicated. Call it when the controllers have read home once. */
export async function enqueueCopies(
  { local, kinds }: ReplicationOptions,
  controllers: readonly Controller[],
  signal?: AbortSignal,
): Promise<void> {
  for (const [index, kind] of kinds.entries()) {
    const { items } = await local.resource(kind).listAll({ signal })
    for (const { metadata } of items as KubeObject<Body>[])
      if (metadata.annotations?.[copyAnnotations.homeVersion] !== undefined) controllers[index]?.enqueue(metadata.name)
  }
}
