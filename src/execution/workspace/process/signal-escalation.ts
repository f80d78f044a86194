import { signalGroup } from './process-group.ts'

/** How an interrupted program is stopped: SIGINT, after `graceMs` SIGTERM, after another `killMs` SIGKILL. */
export type SignalEscalation = {
  /** Default: 60,000. */
  graceMs: number
  /** Default: 10,000. */
  killMs: number
}

/** Sends the signals to the process group until the returned function is called. */
export function escalateSignals(
  processGroupId: number,
  { graceMs = 60_000, killMs = 10_000 }: Partial<SignalEscalation> = {},
  interrupt: (processGroupId: number) => void = group => signalGroup(group, 'SIGINT'),
): () => void {
  interrupt(processGroupId)
  let timer = setTimeout(() => {
    signalGroup(processGroupId, 'SIGTERM')
    timer = setTimeout(() => signalGroup(processGroupId, 'SIGKILL'), killMs)
  }, graceMs)
  return () => clearTimeout(timer)
}
