import { runWorkerProcess } from '../../app/index.ts'
import { note } from '../terminal.ts'
import { packageVersion } from '../version.ts'

export type WorkerCommandOptions = { name?: string; pool?: string; once?: boolean; slots?: number; idleTimeout?: string; label?: string[] }

/** `oarlock worker`: a worker for the server that the environment names (OARLOCK_SERVER, OARLOCK_TOKEN, …). Returns the exit code. */
export async function worker(options: WorkerCommandOptions): Promise<number> {
  // What cannot be printed, for example on a full disk, is lost: it must not end the worker, and with it a Run.
  process.stderr.on('error', () => {})
  return await runWorkerProcess({ ...options, env: process.env, version: packageVersion(), print: note })
}
