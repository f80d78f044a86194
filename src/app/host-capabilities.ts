import { detectEngines } from '../execution/engine/index.ts'
import { engineVersions } from '../execution/worker/index.ts'
import { availableIsolationLevels } from '../execution/workspace/index.ts'

/** Found out anew this often, when a worker is started: somebody may have installed something. */
const everyMs = 5 * 60_000

/** Engines and isolation of this machine, for the workers that are started here: found out once for all of them, in the background. */
export class HostCapabilities {
  #engines: string | undefined
  #levels: string | undefined
  #sinceMs = -Infinity

  constructor() {
    this.#look()
  }

  /** For the environment of a worker; without what is being found out still: workers do without, or look for themselves. */
  environment(): { OARLOCK_ENGINES: string | undefined; OARLOCK_ISOLATION_LEVELS: string | undefined } {
    if (performance.now() - this.#sinceMs > everyMs) this.#look()
    return { OARLOCK_ENGINES: this.#engines, OARLOCK_ISOLATION_LEVELS: this.#levels }
  }

  #look(): void {
    this.#sinceMs = performance.now()
    detectEngines(process.env, { isFresh: true }).then(
      found => {
        const pairs = Object.entries(engineVersions(found)).map(([name, version]) => `${name}=${version}`)
        this.#engines = pairs.join(',')
      },
      () => undefined,
    )
    availableIsolationLevels().then(
      levels => {
        this.#levels = levels.join(',')
      },
      () => undefined,
    )
  }
}
