import type { WorkerPool } from '../../api/index.ts'

/** Makes workers of pools of mode Process; the hub brings one that starts child processes. */
export type PoolDriver = {
  /** Starts a worker that will register under `workerName`. Rejects when it cannot even be started. */
  start(pool: WorkerPool, workerName: string): Promise<void>
  /** Names of the workers that it started and that have not exited. */
  running(): string[]
  /** `exitCode` is undefined for one that was killed by a signal. */
  onExit(listener: (workerName: string, exitCode: number | undefined) => void): void
}
