import { join } from 'node:path'
import { cacheKey, dependencyCacheKey, maxCacheKeys, type Run } from '../../api/index.ts'
import type { WorkerCapabilities } from './worker-capabilities.ts'
import { engineVersions } from './worker-capabilities.ts'
import type { WorkerActivity } from './worker-status-reporter.ts'

export type DetectedCapabilitiesOptions = {
  /** What the worker registered with; undefined if nothing is to be detected but isolation. */
  configured: WorkerCapabilities | undefined
  /** The worker executes one Run for each slot and exits. */
  once: boolean
  cacheDir: string
  /** Reports the status again. */
  onChange(): Promise<void>
  onError(error: unknown, message: string): void
}

/** What a worker finds out about itself while it works; dispatch places Runs by it. */
export class DetectedCapabilities {
  readonly #options: DetectedCapabilitiesOptions
  #engines: WorkerActivity['engines']
  #isolation: WorkerActivity['isolation']
  #networks: WorkerActivity['networks']
  #caches: readonly string[] = []

  constructor(options: DetectedCapabilitiesOptions) {
    this.#options = options
    this.#engines = options.configured?.engines
  }

  get status(): Pick<WorkerActivity, 'engines' | 'isolation' | 'networks' | 'caches'> {
    return { engines: this.#engines, isolation: this.#isolation, networks: this.#networks, caches: this.#caches }
  }

  /** Detects isolation levels and networks that were not configured. Until then only Runs with isolation Process are placed on this worker. */
  async detectIsolation(): Promise<void> {
    const { configured, onChange, onError } = this.#options
    if (configured?.isolation !== undefined) return
    try {
      const { availableIsolationLevels, availableNetworks } = await import('../workspace/index.ts')
      ;[this.#isolation, this.#networks] = await Promise.all([availableIsolationLevels(), availableNetworks()])
      await onChange()
    } catch (error) {
      onError(error, 'failed to detect the isolation levels that this machine supports')
    }
  }

  /**
   * Detects engines that were not configured, on a worker that stays. A worker for a single Run leaves the time that this costs to the
   * Run, which looks for its own engine only.
   */
  async detectEngines(): Promise<void> {
    const { configured, once, onChange, onError } = this.#options
    if (once || configured === undefined || configured.engines !== undefined) return
    try {
      const { detectEngines } = await import('../engine/index.ts')
      this.#engines = engineVersions(await detectEngines(process.env))
      await onChange()
    } catch (error) {
      onError(error, 'failed to detect the installed engines')
    }
  }

  /** A Run found this version; undefined: none. Reported if it differs, because it decides where the next Runs are placed. */
  recordEngine(engine: string, version: string | undefined): void {
    if (!this.#engines || this.#engines[engine] === (version ?? null)) return
    this.#engines = { ...this.#engines, [engine]: version ?? null }
    void this.#options.onChange()
  }

  /** Remembers the source of a Run. */
  recordSource({ spec }: Run): void {
    this.#recordCaches([cacheKey(spec.stack)])
  }

  /** A Run has got the dependencies with this key: its host has them installed for its trust domain. Reported with the next status. */
  recordDependencies(key: string): void {
    this.#recordCaches([key])
  }

  /**
   * Lists the dependencies that the host has installed, of all trust domains, on a worker that stays. What other workers of the host install or
   * remove later is not reported: a wrong key costs the Run an install that it would have needed elsewhere too.
   */
  async detectDependencies(): Promise<void> {
    const { once, cacheDir, onChange, onError } = this.#options
    if (once) return
    try {
      const { listDependencies } = await import('../dependencies/index.ts')
      const held = (await listDependencies(join(cacheDir, 'dependencies'))).filter(({ record }) => record !== undefined)
      if (held.length === 0) return
      const later = this.#caches
      this.#recordCaches([...held.map(({ domain, digest }) => dependencyCacheKey(domain, digest)), ...later])
      await onChange()
    } catch (error) {
      onError(error, 'failed to list the dependencies that this machine has installed')
    }
  }

  /** The most recently used last. A worker that exits with its Run need not report them. */
  #recordCaches(keys: readonly (string | undefined)[]): void {
    if (this.#options.once) return
    const used = keys.filter(key => key !== undefined)
    this.#caches = [...new Set([...this.#caches.filter(key => !used.includes(key)), ...used].reverse())].reverse().slice(-maxCacheKeys)
  }
}
