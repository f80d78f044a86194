import { type ComponentStep, componentSteps } from './kinds.ts'

/** What to do with a component now: write its next step, requeue, or nothing. */
export type StepDecision =
  | { kind: 'write'; step: ComponentStep; nextInMs: number | undefined }
  | { kind: 'wait'; ms: number }
  | { kind: 'done' }

/**
 * How long a component stays in a step: `started` comes after 1 s, each later step after as many seconds as its name has characters.
 * `secondMs` is the length of one simulated second.
 */
export function stayMs(step: ComponentStep, componentName: string, secondMs = 1_000): number | undefined {
  switch (step) {
    case 'pending':
      return secondMs
    case 'started':
    case 'failing':
    case 'retrying':
      return componentName.length * secondMs
    case 'success':
      return undefined
  }
}

/** How many seconds of the simulation a component in this step (undefined: a new one) still needs. */
export function leftSeconds(step: string | undefined, componentName: string): number {
  let ms = 0
  for (let at = Math.max(0, componentSteps.indexOf(step as ComponentStep)); at < componentSteps.length; at++) {
    ms += stayMs(componentSteps[at] as ComponentStep, componentName) ?? 0
  }
  return ms / 1_000
}

/** The simulated installation, exactly as in the original. It depends only on what is stored, so a restart changes nothing. */
export function decideStep(
  componentName: string,
  status: { status?: string; lastReconciliation?: string } | undefined,
  nowMs: number,
  secondMs = 1_000,
): StepDecision {
  if (!status?.status) return write('pending', componentName, secondMs)
  const at = componentSteps.indexOf(status.status as ComponentStep)
  // An unknown step, written by another client: start again.
  if (at < 0) return write('pending', componentName, secondMs)
  const stay = stayMs(componentSteps[at] as ComponentStep, componentName, secondMs)
  if (stay === undefined) return { kind: 'done' }
  const sinceMs = Date.parse(status.lastReconciliation ?? '')
  const waitMs = Number.isNaN(sinceMs) ? 0 : Math.min(stay, sinceMs + stay - nowMs)
  return waitMs > 0 ? { kind: 'wait', ms: waitMs } : write(componentSteps[at + 1] as ComponentStep, componentName, secondMs)
}

function write(step: ComponentStep, componentName: string, secondMs: number): StepDecision {
  return { kind: 'write', step, nextInMs: stayMs(step, componentName, secondMs) }
}
