import { apiGroup, isEnded, labels, type Run, type Stack, workersNamespace } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import type { ApiServer } from '../../kubernetes/server/index.ts'
import { credentialLabels, isNewCredential, workerCredentialName, workerUidAnnotation } from '../join/index.ts'

/** What the rules for workers are decided from. */
export type WorkerFacts = {
  /** The stored Run. */
  run(namespace: string | undefined, name: string | undefined): Pick<Run, 'spec' | 'status'> | undefined
  /** Whether a Run that is assigned to the worker and has not ended meets the condition. */
  someRun(worker: string, meets: (run: Run) => boolean): boolean
  /** The pool that it joined, from the record of its credential; undefined without one. */
  poolOf(worker: string): string | undefined
  /** The labels that it joined with, without that of its pool; undefined if the record of them is malformed. */
  labelsOf(worker: string): Readonly<Record<string, string>> | undefined
  /** Whether its credential is as new as that of a worker that registers, and has not ended. */
  hasNewCredential(worker: string): boolean
  /** The uid of the Worker that it has registered with its credential, or that requested it; undefined: it may create its Worker. */
  registeredUid(worker: string): string | undefined
  /** Records it, in the same commit as the write that is admitted. */
  recordRegistration(worker: string, uid: string): void
  /** Whether its Worker exists, on disk or not yet. */
  hasWorker(worker: string): boolean
  /** A stored object; the table is the plural with the group. */
  stored(table: string, namespace: string | undefined, name: string): KubeObject | undefined
  /** The Stacks of a namespace. */
  stacksIn(namespace: string): Stack[]
  /** Whether a namespace contains Stacks. */
  hasStacks(namespace: string): boolean
}

/** The Runs that are assigned to a worker and have not ended. */
export type RunsOfWorker = (worker: string) => readonly Run[]

/**
 * From the objects that the server has stored.
 * A registration is decided from the newest versions, so that a worker cannot register twice by requests that it sends together.
 * @param cachedRunsOf finds Runs faster, but may not have the newest; the stored ones are searched only if none of these meets a condition.
 */
export function workerFacts(
  server: () => Pick<ApiServer, 'getObject' | 'newestObject' | 'annotate' | 'listObjects' | 'objectsIn' | 'hasObjects'> | undefined,
  cachedRunsOf: RunsOfWorker = () => [],
  nowMs: () => number = Date.now,
): WorkerFacts {
  const runs = `runs.${apiGroup}`
  const stored = (table: string, namespace: string | undefined, name: string) => server()?.getObject(table, namespace, name)
  const credentialOf = (worker: string) => stored('secrets', workersNamespace, workerCredentialName(worker))
  return {
    stored,
    run: (namespace, name) => (name === undefined ? undefined : (stored(runs, namespace, name) as Run | undefined)),
    someRun: (worker, meets) =>
      cachedRunsOf(worker).some(meets) ||
      (server()?.listObjects(runs, 'spec.workerName', worker) ?? []).some(object => !isEnded(object as Run) && meets(object as Run)),
    poolOf: worker => credentialOf(worker)?.metadata.labels?.[labels.pool],
    labelsOf: worker => credentialLabels(credentialOf(worker)),
    hasNewCredential: worker => isNewCredential(credentialOf(worker), nowMs()),
    registeredUid: worker =>
      server()?.newestObject('secrets', workersNamespace, workerCredentialName(worker))?.metadata.annotations?.[workerUidAnnotation],
    recordRegistration: (worker, uid) =>
      server()?.annotate('secrets', workersNamespace, workerCredentialName(worker), { [workerUidAnnotation]: uid }),
    hasWorker: worker => server()?.newestObject(`workers.${apiGroup}`, undefined, worker) !== undefined,
    stacksIn: namespace => (server()?.objectsIn(`stacks.${apiGroup}`, namespace) ?? []) as Stack[],
    hasStacks: namespace => server()?.hasObjects(`stacks.${apiGroup}`, namespace) ?? true,
  }
}
