import { randomUUID } from 'node:crypto'
import { equalJson, type KubeObject, rfc3339, StatusError } from '../../kube/index.ts'
import type { Registry } from '../registry/index.ts'
import { mutate } from '../rest/index.ts'
import type { Store } from '../storage/index.ts'

const namespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease', 'oarlock-system']

export class Lifecycle {
  readonly #store: Store
  constructor(store: Store, _registry: Registry, _onError: (error: unknown, what: string) => void) {
    this.#store = store
  }
  async start(): Promise<void> {
    const table = this.#store.table('namespaces')
    await Promise.all(
      namespaces.map(name =>
        mutate(this.#store, table, name, head =>
          head
            ? { answer: undefined }
            : {
                put: {
                  apiVersion: 'v1',
                  kind: 'Namespace',
                  metadata: {
                    name,
                    uid: randomUUID(),
                    resourceVersion: '',
                    creationTimestamp: rfc3339(this.#store.nowMs),
                    labels: { 'kubernetes.io/metadata.name': name },
                  },
                  spec: { finalizers: ['kubernetes'] },
                  status: { phase: 'Active' },
                } as KubeObject,
              },
        ),
      ),
    )
  }
  async stop(): Promise<void> {}
}
void equalJson
void StatusError
