import { type LeaseRegistration, registeredBy, registrationOf, type Worker } from '../../../../api/index.ts'
import type { LeaseBody } from '../../../../kubernetes/client/index.ts'
import type { Informer } from '../../../../kubernetes/controller/index.ts'
import type { KubeObject } from '../../../../kubernetes/object/index.ts'

type WorkerBody = { spec: Worker['spec']; status?: Worker['status'] }

/**
 * The Workers that have registered with their Lease alone (`src/api/lease-registration.ts`). A Worker that has registered remains registered when its Lease
 * is deleted: that is how its loss is confirmed.
 */
export class LeaseRegistrations {
  readonly #byWorker = new Map<string, LeaseRegistration & { readonly leaseUid: string; isOfPod: boolean }>()

  constructor(leases: Informer<LeaseBody>, workers: Informer<WorkerBody>) {
    leases.onChange({
      changed: ({ type, object }) => {
        const { name } = object.metadata
        if (type !== 'deleted') this.#observe(object)
        else if (!workers.get(name)) this.#byWorker.delete(name)
      },
    })
    workers.onChange({ deleted: ({ metadata: { name } }) => void this.#byWorker.delete(name) })
  }

  /**
   * The Worker, registered if its Lease registers it.
   * @param podUid returns that of the Pod that a controller has created for the Worker, while it is known: others may be able to create a Lease of this name.
   */
  of(worker: Worker, podUid: () => string | undefined): Worker {
    const registration = this.#byWorker.get(worker.metadata.name)
    if (!registration) return worker
    registration.isOfPod ||= registration.podUid === podUid()
    return registration.isOfPod ? registeredBy(worker, registration) : worker
  }

  #observe(lease: KubeObject<LeaseBody>): void {
    const { name, uid } = lease.metadata
    // A renewal.
    if (this.#byWorker.get(name)?.leaseUid === uid) return
    const registration = registrationOf(lease)
    if (registration) this.#byWorker.set(name, { ...registration, leaseUid: uid, isOfPod: false })
  }
}
