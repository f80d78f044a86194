/** A thread for `worker-thread.test.ts`: returns what it gets, throws for `throw`, and never responds to `never`. */
import { serveThreadRequests } from './worker-thread.ts'

serveThreadRequests((text: string) => {
  if (text === 'throw') throw new Error('asked to throw')
  return text === 'never' ? new Promise<string>(() => {}) : text
})
