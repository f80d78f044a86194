import { randomUUID } from 'node:crypto'
import { type KubeObject, rfc3339 } from '../../object/index.ts'
import { systemPriorityClasses } from '../registry/index.ts'
import { mutate } from '../rest/index.ts'
import type { Store } from '../storage/index.ts'

/** Creates the missing PriorityClasses that every Kubernetes cluster has: charts use them without a check. */
export async function ensurePriorityClasses(store: Store): Promise<void> {
  const table = store.table('priorityclasses.scheduling.k8s.io')
  const done = systemPriorityClasses.map(({ name, value, description }) =>
    mutate(store, table, name, head => {
      if (head) return { result: undefined }
      const priorityClass: KubeObject = {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name, uid: randomUUID(), resourceVersion: '', generation: 1, creationTimestamp: rfc3339(store.nowMs) },
        value,
        description,
        preemptionPolicy: 'PreemptLowerPriority',
      }
      return { put: priorityClass }
    }),
  )
  await Promise.all(done)
}
