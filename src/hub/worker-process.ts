import { createClient } from '../client/index.ts'
import { runWorker, WorkerOptionError, workerExitCodes, workerOptionsFromEnv, workerSignals } from '../worker/index.ts'

export type WorkerProcessOptions = {
  name?: string
  pool?: string
  once: boolean
  env: Readonly<Record<string, string | undefined>>
  version: string
  /** Gets one line of JSON per event, and what keeps the worker from starting. */
  print(line: string): void
}

/** The worker's process: reads its environment, takes Runs until it is done or a signal says so. Returns the exit code. */
export async function runWorkerProcess(options: WorkerProcessOptions): Promise<number> {
  const { env, version, print } = options
  const { signal, interruptSignal, dispose } = workerSignals()
  try {
    const { name, pool, once } = options
    const { server, ...settings } = workerOptionsFromEnv(env, { name, pool, once })
    const { caCertificate, token } = settings
    const client = await createClient({ cluster: { server, caCertificate, token }, userAgent: 'oarlock-worker', fieldManager: 'oarlock' })
    const line = (level: string) => (fields: object, message: string) =>
      print(JSON.stringify({ time: new Date().toISOString(), level, ...fields, message }))
    try {
      const log = { info: line('info'), warn: line('warn') }
      const { exitCode } = await runWorker({ ...settings, client, version, log, signal, interruptSignal })
      return exitCode
    } finally {
      await client.close()
    }
  } catch (error) {
    if (!(error instanceof WorkerOptionError)) throw error
    print(`oarlock worker: ${error.message}`)
    return workerExitCodes.badSetting
  } finally {
    dispose()
  }
}
