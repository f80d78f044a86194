import { defaults, workerPoolResource } from '../api/index.ts'
import { type Client, createClient } from '../client/index.ts'
import { isReason, parseDuration, parseQuantity, quantityValue, StatusError } from '../kube/index.ts'
import {
  runWorker,
  WorkerOptionError,
  type WorkerOverrides,
  type WorkerSettings,
  workerExitCodes,
  workerOptionsFromEnv,
  workerSignals,
} from '../worker/index.ts'

export type WorkerProcessOptions = WorkerOverrides & {
  env: Readonly<Record<string, string | undefined>>
  version: string
  /** Gets one line of JSON per event, and what keeps the worker from starting. */
  print(line: string): void
}

/** The worker's process: reads its environment, takes Runs until it is done or a signal says so. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  const { env, version, print, ...overrides } = options
  const { signal, interruptSignal, dispose } = workerSignals()
  try {
    const settings = workerOptionsFromEnv(env, overrides)
    const { server, caCertificate, token } = settings
    const client = await createClient({ cluster: { server, caCertificate, token }, userAgent: 'oarlock-worker', fieldManager: 'oarlock' })
    const line = (level: string) => (fields: object, message: string) =>
      print(JSON.stringify({ time: new Date().toISOString(), level, ...fields, message }))
    try {
      const log = { info: line('info'), warn: line('warn') }
      const way = await wayOfLife(client, settings)
      const { exitCode } = await runWorker({ ...settings, ...way, client, version, log, signal, interruptSignal })
      return exitCode
    } finally {
      await client.close()
    }
  } catch (error) {
    if (error instanceof StatusError) {
      print(`oarlock worker: ${error.message}`)
      return isReason(error, 'Unauthorized', 'Forbidden') ? workerExitCodes.notAdmitted : workerExitCodes.notRegistered
    }
    if (!(error instanceof WorkerOptionError)) throw error
    print(`oarlock worker: ${error.message}`)
    return workerExitCodes.badSetting
  } finally {
    dispose()
  }
}

type WayOfLife = { once: boolean; slots: number; drainGraceMs: number; recycle: { afterRuns?: number; aboveMemoryBytes?: number } }

/** How the worker lives: as its driver or its command line says, else as its pool does, else warm with one slot. */
async function wayOfLife(client: Client, settings: WorkerSettings): Promise<WayOfLife> {
  const { lifecycle, slots, pool, drainGraceMs, recycleAfterRuns, recycleAboveBytes } = settings
  // Who started it for a pool has said it all: no question before a one-shot worker's Run.
  const isTold = lifecycle !== undefined && (slots !== undefined || lifecycle === 'OneShot')
  const spec = isTold ? undefined : (await client.resource(workerPoolResource).getOrUndefined(pool))?.spec
  const afterRuns = recycleAfterRuns ?? spec?.recycle?.afterRuns
  const aboveMemory = spec?.recycle?.aboveMemory
  const aboveMemoryBytes = recycleAboveBytes ?? (aboveMemory === undefined ? undefined : quantityValue(parseQuantity(aboveMemory)))
  return {
    once: (lifecycle ?? (spec ? (spec.lifecycle ?? 'OneShot') : 'Warm')) === 'OneShot',
    slots: slots ?? spec?.slots ?? 1,
    drainGraceMs: drainGraceMs ?? parseDuration(spec?.drainGrace ?? defaults.drainGrace),
    recycle: { ...(afterRuns !== undefined && { afterRuns }), ...(aboveMemoryBytes !== undefined && { aboveMemoryBytes }) },
  }
}
