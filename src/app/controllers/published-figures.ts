import type { Registry } from 'prom-client'
import { type ControllerFigures, publishControllerFigures } from '../../api/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { readControllerMetrics } from './controller-metrics.ts'

/** Leases are renewed each second: what they publish changes less often. */
const everyMs = 10_000

/** What this process publishes in its Leases about its controllers: a console in another process shows it. */
export class PublishedFigures {
  readonly #registry: Registry
  readonly #log: Log
  #figures: readonly ControllerFigures[] = []
  #readMs = Number.NEGATIVE_INFINITY

  constructor(registry: Registry, log: Log) {
    this.#registry = registry
    this.#log = log
  }

  /** Annotations with the figures of the last seconds, of the controllers that `isOurs` accepts. */
  annotations(isOurs: (controller: string) => boolean): Readonly<Record<string, string>> {
    if (performance.now() - this.#readMs >= everyMs) {
      this.#readMs = performance.now()
      readControllerMetrics(this.#registry).then(
        figures => {
          this.#figures = figures
        },
        error => this.#log.warn({ err: error }, 'the metrics of the controllers cannot be read: consoles show older ones'),
      )
    }
    return publishControllerFigures(this.#figures.filter(({ name }) => isOurs(name)))
  }
}
