/**
 * @module app/stores: state store and log store as a role. Start reading here; `stores-process.ts` runs them as a process of their own.
 * In: a data directory, and a client to find Runs and Stacks. Out: request handlers, which authorize by `store-access.ts`.
 * Out of scope: what is stored, and how (`stores/`).
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Counter, Registry } from 'prom-client'
import { type Run, runResource, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Log, Manager } from '../../kubernetes/controller/index.ts'
import { createLogHandler, type LogHandler, type LogStore, openLogStore } from '../../stores/log/index.ts'
import { createStateHandler, openStateStore, type StateHandler, type StateStore } from '../../stores/state/index.ts'
import { prepareDataDirectory } from '../data-directory.ts'
import { openDataIdentity } from '../data-identity.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import type { GenerationStore } from '../discovery/index.ts'
import { brokenLocksCounter, openJournalsGauge, rejectedWritesCounter, unreadableJournalsCounter } from '../endpoints/metrics.ts'
import { toAppStartError } from '../to-app-start-error.ts'
import { createBackupHandlers, logBackupPath, stateBackupPath } from './backup-handler.ts'
import { openGenerationStore } from './generation-store.ts'
import { createRunInputs } from './run-inputs.ts'
import { readStateKey } from './state-key.ts'
import { authorizeLog, authorizeState, lockAbandonedCheck, orUnavailable, type StoreFacts } from './store-access.ts'
import { lockIdOf } from './stores-lease.ts'

/** The state store and the log store of one data directory, as a role of a process. */
export type Stores = {
  readonly dataDir: string
  /** Identifies these states: the id of a restored directory is the same, that of an empty one is new. */
  readonly id: string
  readonly generation: GenerationStore
  /** Identifies the lock on the directory (stores-lease.ts). */
  readonly lockId: string
  readonly state: StateStore
  readonly log: LogStore
  /** Deletes the log of a Run that was deleted. Never rejects. */
  removeLog(run: { namespace: string; name: string }): Promise<void>
  close(): Promise<void>
}

export type StoreHandlers = { readonly state: StateHandler; readonly log: LogHandler }

export type StoreHandlersOptions = {
  /** Needs to read Runs, Stacks and Workers, to create SubjectAccessReviews, and what `run-inputs.ts` needs. */
  client: Client
  /** In a partition: of the gateway, where the Workers of all partitions are. Default: they are where `client` is. */
  workersClient?: Client | undefined
  /** Caches, which save a request each. Default: every object is requested from the API server. */
  cachedRun?(namespace: string, name: string): Run | undefined
  cachedStack?(namespace: string, name: string): Stack | undefined
  locksBroken?: Pick<Counter, 'inc'>
  writesRejected?: Pick<Counter<'reason'>, 'inc'>
  journalsUnreadable?: Pick<Counter, 'inc'>
  log: Log
}

export const hasStates = (dataDir: string): boolean => existsSync(join(dataDir, 'state', 'state.db'))

/**
 * Opens the stores, and locks their directory for the life of the process: the thread of the state store closes its file when it is idle, and
 * logs are plain files.
 * @throws {AppStartError} if the data directory cannot be used, or its states belong to another key.
 */
export async function openStores({ dataDir, log }: { dataDir: string; log: Log }): Promise<Stores> {
  const directory = join(dataDir, 'state')
  let identity: ReturnType<typeof openDataIdentity> | undefined
  try {
    prepareDataDirectory(dataDir, log)
    const file = join(directory, 'stores.db')
    const isNew = !hasStates(dataDir)
    identity = openDataIdentity({
      file,
      dataDir,
      usedBy: '"oarlock stores" or "oarlock up"',
      idBytes: 16,
      isNew,
    })
    const { id, database, release } = identity
    const generation = openGenerationStore(database, { isNew })
    const state = await openStateStore({ directory, key: readStateKey(dataDir) })
    const logs = openLogStore({ directory: join(dataDir, 'logs') })
    return {
      dataDir,
      id,
      generation,
      lockId: lockIdOf(file),
      state,
      log: logs,
      removeLog: async ({ namespace, name }) => {
        try {
          await logs.remove({ namespace, run: name })
        } catch (error) {
          log.warn({ err: error, run: name }, 'failed to remove the log of a deleted Run')
        }
      },
      close: async () => {
        try {
          await logs.close()
          await state.close()
        } finally {
          release()
        }
      },
    }
  } catch (error) {
    identity?.release()
    throw toAppStartError(error, { dataDir, listen: '' })
  }
}

/**
 * Serves `/state/`, with the inputs of Runs (`run-inputs.ts`), and `/logs/`, and copies of both for backups. Requests are authenticated by the caller: by the API server on whose address they are served,
 * or by `authenticateByTokenReview` on another one. They are authorized here (`store-access.ts`).
 */
export function createStoreHandlers(stores: Stores, options: StoreHandlersOptions): StoreHandlers {
  const { state, log: logs } = stores
  const {
    client,
    workersClient,
    cachedRun = () => undefined,
    cachedStack = () => undefined,
    locksBroken,
    writesRejected,
    journalsUnreadable,
    log,
  } = options
  const facts: StoreFacts = {
    client,
    access: new AccessReviewer(client),
    cachedRun,
    cachedStack,
    checkStackToken: (stackUid, token) => state.checkStackToken(stackUid, token),
    nowMs: Date.now,
  }
  const onAccessError = (error: unknown) => log.warn({ err: error }, 'the API server did not decide about a request to the stores')
  const backups = createBackupHandlers({ stores, access: facts.access, log })
  const handlers: StoreHandlers = {
    state: createStateHandler({
      store: state,
      authorize: request => orUnavailable(authorizeState(facts, request), onAccessError),
      isLockAbandoned: lockAbandonedCheck(client, workersClient),
      inputs: createRunInputs({
        client,
        onError: error => log.warn({ err: error }, 'the API server did not return the inputs of a Run'),
      }),
      onError: error => log.error({ err: error }, 'request to the state store failed'),
      onLockBroken: () => locksBroken?.inc(),
      onWriteRejected: reason => writesRejected?.inc({ reason }),
      onJournalUnreadable: () => journalsUnreadable?.inc(),
    }),
    log: createLogHandler({
      store: logs,
      authorize: request => orUnavailable(authorizeLog(facts, request), onAccessError),
      onError: error => log.error({ err: error }, 'request to the log store failed'),
    }),
  }
  return {
    state: (req, res, context) => (req.url === stateBackupPath ? backups.state : handlers.state)(req, res, context),
    log: (req, res, context) => (req.url === logBackupPath ? backups.log : handlers.log)(req, res, context),
  }
}

/** The same with the caches of a manager, whose Runs also decide when a log is deleted. Call it before the manager starts. */
export function serveStores(
  stores: Stores,
  {
    client,
    workersClient,
    manager,
    registry,
    log,
  }: Pick<StoreHandlersOptions, 'client' | 'workersClient' | 'log'> & { manager: Manager; registry: Registry },
): StoreHandlers {
  const runs = manager.informer(runResource)
  const stacks = manager.informer(stackResource)
  openJournalsGauge(registry, () => stores.state.openJournals)
  runs.onChange({ deleted: ({ metadata: { namespace = '', name } }) => void stores.removeLog({ namespace, name }) })
  return createStoreHandlers(stores, {
    ...{ client, workersClient },
    cachedRun: (namespace, name) => runs.get(`${namespace}/${name}`),
    cachedStack: (namespace, name) => stacks.get(`${namespace}/${name}`),
    locksBroken: brokenLocksCounter(registry),
    writesRejected: rejectedWritesCounter(registry),
    journalsUnreadable: unreadableJournalsCounter(registry),
    log,
  })
}
