import { formatDuration } from '../../../kubernetes/object/index.ts'
import type { DispatchEvent } from '../dispatch-event.ts'
import { epochMs } from '../objects.testing.ts'

/** What all parts of the simulated cluster share: the time, the printer, and the leader that observes what happens. */
export class Simulation {
  nowMs = epochMs
  readonly observe: (event: DispatchEvent) => void
  readonly #lines: string[] = []

  constructor(observe: (event: DispatchEvent) => void) {
    this.observe = observe
  }

  print(text: string): void {
    const ms = this.nowMs - epochMs
    this.#lines.push(`${ms === 0 ? '0s' : formatDuration(ms)} ${text}`)
  }

  takeLines(): string[] {
    return this.#lines.splice(0)
  }
}
