import { isEnded, isStartRequested, type Run, runResource, type Worker, workerResource, workersNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { coerceError, type Informer, type Log } from '../../kubernetes/controller/index.ts'
import { isReason, type KubeObject, rfc3339 } from '../../kubernetes/object/index.ts'
import { lastVersionWithinMs } from '../last-version.ts'
import {
  endedAtAnnotation,
  listJoinSecrets,
  mayRegister,
  workerCredentialName,
  workerCredentialType,
  workerUidAnnotation,
} from './join-secrets.ts'

export type CredentialRevokerOptions = {
  client: Client
  workers: Informer<Pick<Worker, 'spec' | 'status'>>
  /** Withdraws what lets the worker register, where no authorizer of Oarlock asks {@link mayRegister}: it has created its Worker. */
  onRegistered?(worker: string, record: KubeObject<SecretBody>): Promise<void>
  /** Withdraws the other rights of the worker, where no authorizer of Oarlock does. */
  onEnded?(worker: string): Promise<void>
  log: Log
  nowMs?: () => number
}

const sweepEveryMs = 60_000

/**
 * Ends the credential of a worker when its Worker was deleted, because the worker has exited, was declared lost, or an administrator deleted
 * it. It is deleted immediately if the worker has no Run to finish. Otherwise it can be used for nothing else, is not renewed, and is deleted
 * when the Runs have ended; after the Run of a lost worker only when the store accepts no last version of its state any more.
 */
export class CredentialRevoker {
  readonly #options: CredentialRevokerOptions
  readonly #nowMs: () => number
  readonly #unsubscribe: () => void
  readonly #timer: NodeJS.Timeout

  constructor(options: CredentialRevokerOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#unsubscribe = options.workers.onChange({
      added: worker => {
        // The first ones are those that exist: a sweep reads the records of all together.
        if (options.workers.hasSynced && !isStartRequested(worker)) void this.#report(this.#register(worker))
      },
      deleted: ({ metadata }) => void this.#report(this.#end(metadata.name)),
    })
    // Those whose Runs have ended since, and those of Workers that were deleted while no process observed it.
    this.#timer = setInterval(() => void this.#report(this.sweep()), sweepEveryMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#unsubscribe()
  }

  /** Ends every credential whose worker has no Worker and can create none. */
  async sweep(): Promise<void> {
    if (!this.#options.workers.hasSynced) return
    for (const secret of await listJoinSecrets(this.#options.client)) {
      if (secret.type !== workerCredentialType) continue
      const worker = secret.metadata.name.slice(workerCredentialName('').length)
      const registered = this.#options.workers.get(worker)
      if (registered) await this.#recordRegistration(registered, secret)
      else if (!mayRegister(secret, this.#nowMs())) await this.#end(worker)
    }
  }

  async #register(worker: Pick<Worker, 'metadata'>): Promise<void> {
    const { client } = this.#options
    const { name } = worker.metadata
    const record = await client.resource(secretResource).getOrUndefined(workerCredentialName(name), { namespace: workersNamespace })
    if (record) await this.#recordRegistration(worker, record)
  }

  /** The record names the Worker only when the right is withdrawn: until then a sweep repeats it. */
  async #recordRegistration({ metadata: { name: worker, uid } }: Pick<Worker, 'metadata'>, record: KubeObject<SecretBody>): Promise<void> {
    const { client, onRegistered } = this.#options
    const { metadata } = record
    if (!onRegistered || metadata.annotations?.[workerUidAnnotation] !== undefined || hasEnded(record)) return
    await onRegistered(worker, record)
    const patch = { metadata: { uid: metadata.uid, annotations: { [workerUidAnnotation]: uid } } }
    const secrets = client.resource(secretResource)
    await secrets.patch(metadata.name, patch, { type: 'merge', namespace: workersNamespace }).catch(ignoreMissing)
  }

  /** The server is asked: a cache may not have a Worker yet, or be stopped. */
  async #end(worker: string): Promise<void> {
    const { client } = this.#options
    const record = await client.resource(secretResource).getOrUndefined(workerCredentialName(worker), { namespace: workersNamespace })
    // The Worker of this name may be a new one: a controller requested it again.
    if (record && !(await client.resource(workerResource).getOrUndefined(worker))) await this.#endRecord(worker, record)
  }

  async #endRecord(worker: string, { metadata }: KubeObject<SecretBody>): Promise<void> {
    const { client, onEnded } = this.#options
    const secrets = client.resource(secretResource)
    const { name, uid, annotations = {} } = metadata
    const { items } = await client.resource(runResource).listAll({ fieldSelector: `spec.workerName=${worker}` })
    if (!items.some(run => this.#needsCredential(run))) {
      await secrets.delete(name, { namespace: workersNamespace, preconditions: { uid } }).catch(ignoreMissing)
    } else if (annotations[endedAtAnnotation] === undefined) {
      const patch = { metadata: { uid, annotations: { [endedAtAnnotation]: rfc3339(this.#nowMs()) } } }
      await secrets.patch(name, patch, { type: 'merge', namespace: workersNamespace }).catch(ignoreMissing)
      await onEnded?.(worker)
    }
  }

  /** It is active, or a supervisor may still store the last version of its state. */
  #needsCredential(run: Run): boolean {
    if (!isEnded(run)) return true
    const endedForMs = this.#nowMs() - Date.parse(run.status?.finishedAt ?? '')
    return run.status?.phase === 'Lost' && Math.abs(endedForMs) <= lastVersionWithinMs
  }

  async #report(ending: Promise<void>): Promise<void> {
    try {
      await ending
    } catch (thrown) {
      this.#options.log.warn({ err: coerceError(thrown) }, 'failed to end the credentials of deleted workers, retrying')
    }
  }
}

const hasEnded = ({ metadata }: KubeObject<SecretBody>): boolean => metadata.annotations?.[endedAtAnnotation] !== undefined

function ignoreMissing(error: unknown): void {
  if (!isReason(error, 'NotFound', 'Conflict')) throw error
}
