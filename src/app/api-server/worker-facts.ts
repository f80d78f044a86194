import { apiGroup, isEnded, labels, type Run, workersNamespace } from '../../api/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import type { ApiServer } from '../../kubernetes/server/index.ts'
import { credentialLabels, mayRegister, workerCredentialName } from '../join/index.ts'

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
  /** Whether its credential is new: that of a worker whose Worker was deleted registers no other one. */
  mayRegister(worker: string): boolean
  /** A stored object; the table is the plural with the group. */
  stored(table: string, namespace: string | undefined, name: string): KubeObject | undefined
  /** Whether a namespace contains Stacks. */
  hasStacks(namespace: string): boolean
}

/** The Runs that are assigned to a worker and have not ended. */
export type RunsOfWorker = (worker: string) => readonly Run[]

/**
 * From the objects that the server has stored.
 * @param cachedRunsOf finds Runs faster, but may not have the newest; the stored ones are searched only if none of these meets a condition.
 */
export function workerFacts(
  server: () => Pick<ApiServer, 'getObject' | 'listObjects' | 'hasObjects'> | undefined,
  cachedRunsOf: RunsOfWorker = () => [],
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
    mayRegister: worker => mayRegister(credentialOf(worker), Date.now()),
    hasStacks: namespace => server()?.hasObjects(`stacks.${apiGroup}`, namespace) ?? true,
  }
}
