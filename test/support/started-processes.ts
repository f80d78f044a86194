import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** The child processes that this process starts until `stop` is called, in the order of their start. */
export function followStartedProcesses(): { readonly all: readonly ChildProcess[]; running(): ChildProcess[]; stop(): void } {
  const all: ChildProcess[] = []
  const follow = (message: unknown) => {
    all.push((message as { readonly process: ChildProcess }).process)
  }
  subscribe('child_process', follow)
  return {
    all,
    running: () => all.filter(({ pid, exitCode, signalCode }) => pid !== undefined && exitCode === null && signalCode === null),
    stop: () => unsubscribe('child_process', follow),
  }
}
