/**
 * A process for tests: returns what it gets, throws for `throw`, exits for `exit`, never responds to `never`, is busy without end with `loop`, and needs
 * more memory than it may for `fill`, and with a single allocation for `set`. For `env` it returns the names of its environment.
 */
import { serveProcessRequests } from './limited-process.ts'

serveProcessRequests((text: string) => {
  if (text === 'throw') throw new SyntaxError('asked to throw')
  if (text === 'exit') {
    process.stderr.write('asked to exit')
    process.exit(3)
  }
  const kept: number[][] = []
  for (let size = 0; text === 'loop' || text === 'fill'; size++) if (text === 'fill') kept.push([size])
  if (text === 'set') return String(new Set(Array.from({ length: 6_000_000 }, (_, index) => index)).size)
  if (text === 'env') return Object.keys(process.env).join()
  return text === 'never' ? new Promise<string>(() => {}) : text
})
