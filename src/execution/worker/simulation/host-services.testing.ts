import type { VirtualClock } from '../../../../test/support/virtual-clock.ts'
import type { SimulatedProcess } from './simulated-process.testing.ts'

/** How long a message takes between two processes of the host. */
export const messageMs = 1

/** The directory of a Run. Its owners protect it from sweeps; while one of `holders` has its pipe open, its reaper waits. */
export type SimulatedDirectory = { readonly uid: string; readonly owners: Set<SimulatedProcess>; readonly holders: Set<SimulatedProcess> }

/** What the parts of a simulated host need of it. They do not import the host, which creates them. */
export type HostServices = {
  readonly time: VirtualClock
  readonly directories: Map<string, SimulatedDirectory>
  nowMs(): number
  report(text: string): void
  reportRoutine(text: string): void
  reportMessage(text: string, isRoutine?: boolean): void
  /** Signals the process groups of engines. */
  signal(groups: Iterable<number>, signal: NodeJS.Signals, sender: string): void
  /** Kills every process that carries the Run's mark. */
  killRun(uid: string, sender: string): void
  removeDirectory(uid: string): void
  onExit(process: SimulatedProcess): void
}
