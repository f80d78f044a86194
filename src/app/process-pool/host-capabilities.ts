import { detectEngines } from '../../execution/engine/index.ts'
import { engineVersions } from '../../execution/worker/index.ts'
import { availableIsolationLevels, availableNetworks } from '../../execution/workspace/index.ts'

/** Detection is repeated this often, when a worker starts: an engine may have been installed meanwhile. */
const detectEveryMs = 5 * 60_000

/** Engines, isolation levels and networks of this machine, detected in the background once for all workers that are started here. */
export class HostCapabilities {
  #engines: string | undefined
  #levels: string | undefined
  #networks: string | undefined
  #detectedAtMs = -Infinity

  constructor() {
    this.#detect()
  }

  /** Variables for the environment of a worker. Undefined until detected: the worker then detects them itself. */
  environment(): {
    OARLOCK_ENGINES: string | undefined
    OARLOCK_ISOLATION_LEVELS: string | undefined
    OARLOCK_NETWORKS: string | undefined
  } {
    if (performance.now() - this.#detectedAtMs > detectEveryMs) this.#detect()
    return { OARLOCK_ENGINES: this.#engines, OARLOCK_ISOLATION_LEVELS: this.#levels, OARLOCK_NETWORKS: this.#networks }
  }

  #detect(): void {
    this.#detectedAtMs = performance.now()
    detectEngines(process.env, { isFresh: true }).then(
      found => {
        const pairs = Object.entries(engineVersions(found)).map(([name, version]) => `${name}=${version}`)
        this.#engines = pairs.join(',')
      },
      () => undefined,
    )
    Promise.all([availableIsolationLevels(), availableNetworks()]).then(
      ([levels, networks]) => {
        this.#levels = levels.join(',')
        this.#networks = networks?.join(',')
      },
      () => undefined,
    )
  }
}
