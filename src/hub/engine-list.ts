import { detectEngines } from '../engine/index.ts'
import { foundEngines } from '../worker/index.ts'

/** Found out anew this often, when a worker is started: somebody may have installed one. */
const everyMs = 5 * 60_000

/** The engines of this machine, for the workers that are started here: found out once for all of them, in the background. */
export class EngineList {
  #text: string | undefined
  #sinceMs = -Infinity

  constructor() {
    this.#look()
  }

  /** As OARLOCK_ENGINES has it; undefined while it is being found out. */
  known(): string | undefined {
    if (performance.now() - this.#sinceMs > everyMs) this.#look()
    return this.#text
  }

  #look(): void {
    this.#sinceMs = performance.now()
    detectEngines(process.env).then(
      found => {
        const pairs = Object.entries(foundEngines(found)).map(([name, version]) => `${name}=${version}`)
        this.#text = pairs.join(',')
      },
      // Workers do without; their Runs look for themselves.
      () => undefined,
    )
  }
}
