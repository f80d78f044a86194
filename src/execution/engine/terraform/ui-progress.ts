import type { UiEvent } from './ui-stream.ts'

export type Progress = { done: number; total: number; current?: string }

/** Counts the steps of an apply from its stream: "3 of 12", and what is being worked on. */
export function createUiProgress(): { add(event: UiEvent): Progress | undefined; readonly finished: number } {
  let total = 0
  let done = 0
  const running = new Set<string>()
  const now = (): Progress => {
    const [current] = running
    return { done, total: Math.max(total, done), ...(current !== undefined && { current }) }
  }
  return {
    get finished() {
      return done
    },
    add(event) {
      switch (event.kind) {
        case 'planned':
          total += event.steps // all of them come before the first step starts
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
