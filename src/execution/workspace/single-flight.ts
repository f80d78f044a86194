import { setTimeout as delay } from 'node:timers/promises'
import type { Release } from './entry-lock.ts'

/** Something that several Runs of a host need, and that one of them makes. */
export type Flight = {
  /** Flights with the same name exclude each other. */
  readonly lock: string
  /** For the log, such as `provider registry.terraform.io/hashicorp/aws`. */
  readonly title: string
  /** Takes what has been made, and returns true; false if it has to be made. Called again and again while others make it. */
  take(): Promise<boolean>
  /** Makes and takes it, while no other caller of any process on this host does. Called once at most; does not throw if the Run can continue. */
  make(): Promise<void>
}

export type FlightOptions = {
  lock(name: string, description: string): Promise<{ unlock: Release } | { holder: string }>
  /** Names this caller in the log of those that wait for it. */
  description: string
  signal: AbortSignal
  log(line: string): void
  /** How long to wait for others in total. Default: 5 minutes. */
  maxWaitMs?: number | undefined
}

/**
 * `take` of a flight that a Run can do without: an error, which goes to `onError`, completes the flight. `afterTake` is called after each
 * attempt without an error.
 */
export function takeOrContinue(
  take: () => Promise<boolean>,
  { afterTake, onError }: { afterTake(): void; onError(message: string): void },
): () => Promise<boolean> {
  return async () => {
    try {
      const isComplete = await take()
      afterTake()
      return isComplete
    } catch (error) {
      onError((error as Error).message)
      return true
    }
  }
}

const defaultWaitMs = 5 * 60_000
const pollMs = 100

/**
 * Completes each flight: takes what is there, makes what is not, and waits for what another process makes. When that one ends or fails without
 * it, one of those that wait takes over. A caller has one lock at a time, and waits only while it has none, so flights cannot wait for each
 * other in a circle. Returns the flights that others did not complete in time.
 * @throws the reason of `signal`, as soon as it aborts, also while this waits.
 */
export async function completeFlights(flights: readonly Flight[], options: FlightOptions): Promise<readonly Flight[]> {
  const { signal, log, maxWaitMs = defaultWaitMs } = options
  const waits = new Map<Flight, { holder: string; sinceMs: number }>()
  let pending = flights
  for (let waitedMs = 0; ; ) {
    const held: Flight[] = []
    for (const flight of pending) {
      const holder = await complete(flight, options)
      const wait = waits.get(flight)
      if (holder === undefined) {
        if (wait) log(`${flight.title}: waited ${seconds(performance.now() - wait.sinceMs)} for ${wait.holder}`)
        continue
      }
      held.push(flight)
      // Without a name the lock was released in between.
      if (holder === '' || wait?.holder === holder) continue
      waits.set(flight, { holder, sinceMs: wait?.sinceMs ?? performance.now() })
      log(`${flight.title}: waiting for ${holder}`)
    }
    if (held.length === 0) return []
    if (waitedMs >= maxWaitMs) {
      for (const { title } of held) log(`${title}: not waiting any longer, after ${seconds(waitedMs)}`)
      return held
    }
    // What others held when it was its turn may have become free while this one made something.
    if (held.length === pending.length) {
      const beforeMs = performance.now()
      await delay(pollMs, undefined, { signal })
      waitedMs += performance.now() - beforeMs
    }
    pending = held
  }
}

/** Undefined when the flight is complete, else the description of who has its lock. */
async function complete(flight: Flight, { lock, description, signal }: FlightOptions): Promise<string | undefined> {
  signal.throwIfAborted()
  if (await flight.take()) return undefined
  const found = await lock(flight.lock, description)
  if ('holder' in found) return found.holder
  try {
    // It may have been made between the two.
    if (!(await flight.take())) await flight.make()
    return undefined
  } finally {
    await found.unlock()
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
