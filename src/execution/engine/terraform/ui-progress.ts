import type { UiEvent } from './ui-stream.ts'

/** `creating`: the addresses of resources whose creation has begun and has not ended, in this order. */
export type TerraformProgress = { done: number; total: number; current?: string; creating: readonly string[] }

/** Counts the steps of an apply ("3 of 12") from its events, and names the current resource. */
export function createUiProgress(): { add(event: UiEvent): TerraformProgress | undefined; readonly creating: readonly string[] } {
  let total = 0
  let done = 0
  const running = new Set<string>()
  const creating = new Set<string>()
  const now = (): TerraformProgress => {
    const [current] = running
    return { done, total: Math.max(total, done), ...(current !== undefined && { current }), creating: [...creating] }
  }
  return {
    get creating() {
      return [...creating]
    },
    add(event) {
      switch (event.kind) {
        case 'planned':
          total += event.steps // all planned changes come before the first step starts
          return undefined
        case 'started':
          running.add(event.address)
          if (event.isCreation) creating.add(event.address)
          return now()
        case 'finished':
          running.delete(event.address)
          creating.delete(event.address)
          done++
          return now()
        case 'failed':
          running.delete(event.address)
          creating.delete(event.address)
          return now()
        default:
          return undefined
      }
    },
  }
}
