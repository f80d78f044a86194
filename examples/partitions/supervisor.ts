import type { RoleChild, RoleExit } from './installation.ts'

const backoff = { minMs: 1_000, maxMs: 30_000 }
/** A process that has run for so long has started: its next restart is quick again. */
const stableAfterMs = 60_000

/**
 * Starts processes again that fail, after delays that double, as a service manager does. One that ends with code 0, such as after SIGTERM, stays ended until
 * {@link startEnded}.
 */
export class Supervisor {
  readonly #report: (text: string) => void
  readonly #timers = new Map<RoleChild, NodeJS.Timeout>()
  readonly #failures = new Map<RoleChild, number>()
  readonly #startedMs = new Map<RoleChild, number>()
  readonly #ended = new Set<RoleChild>()

  /** @param report prints a line. @param hint how the user starts a role that has ended normally. */
  constructor(roles: Iterable<RoleChild>, report: (text: string) => void, hint: string) {
    this.#report = report
    for (const role of roles) {
      this.#startedMs.set(role, performance.now())
      role.onExit(exit => {
        if (exit.code === 0) {
          this.#ended.add(role)
          report(`${role.name} has ended. Start it again with: ${hint}`)
        } else this.#restartLater(role, exit)
      })
    }
  }

  /** Starts what has ended normally. */
  startEnded(): void {
    for (const role of this.#ended) this.#start(role)
    this.#ended.clear()
  }

  /** Starts nothing more. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    for (const role of this.#startedMs.keys()) role.onExit(() => {})
  }

  #restartLater(role: RoleChild, { code, signal }: RoleExit): void {
    const isStable = performance.now() - (this.#startedMs.get(role) ?? 0) >= stableAfterMs
    const failures = isStable ? 1 : (this.#failures.get(role) ?? 0) + 1
    this.#failures.set(role, failures)
    const delayMs = Math.min(backoff.minMs * 2 ** (failures - 1), backoff.maxMs)
    const how = signal ? `was ended by ${signal}` : `exited with code ${code}`
    this.#report(`${role.name} ${how}; starting it again in ${delayMs / 1_000} s`)
    this.#timers.set(
      role,
      setTimeout(() => this.#start(role), delayMs),
    )
  }

  #start(role: RoleChild): void {
    role.restart()
    this.#startedMs.set(role, performance.now())
    this.#report(`${role.name} is started again`)
  }
}
