import type { UiEvent } from './ui-stream.ts'

export type TerraformProgress = { done: number; total: number; current?: string }

/** Counts the steps of an apply ("3 of 12") from its events, and names the current resource. */
export function createUiProgress(): { add(event: UiEvent): TerraformProgress | undefined } {
  let total = 0
  let done = 0
  const running = new Set<string>()
  const now = (): TerraformProgress => {
    const [current] = running
    return { done, total: Math.max(total, done), ...(current !== undefined && { current }) }
  }
  return {
    add(event) {
      switch (event.kind) {
        case 'planned':
          total += event.steps // all planned changes come before the first step starts
          return undefined
        case 'started':
          running.add(event.address)
          return now()
        case 'finished':
          running.delete(event.address)
          done++
          return now()
        default:
          return undefined
      }
    },
  }
}
