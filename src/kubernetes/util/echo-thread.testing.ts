/**
 * A thread for tests: returns what it gets, throws for `throw`, never responds to `never`, stays busy with `loop`, and needs ever more memory
 * for `fill`.
 */
import { serveThreadRequests } from './worker-thread.ts'

serveThreadRequests((text: string) => {
  if (text === 'throw') throw new Error('asked to throw')
  const kept: number[][] = []
  for (let size = 0; text === 'loop' || text === 'fill'; size++) if (text === 'fill') kept.push([size])
  return text === 'never' ? new Promise<string>(() => {}) : text
})
