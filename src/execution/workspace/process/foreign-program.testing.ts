/**
 * For `process-runner.test.ts`, started as root: starts a program, becomes another user and stops the program, which is then one of another user, as
 * with one that sudo has started. Prints how it ended.
 */
import { createProcessRunner } from './process-runner.ts'

const [script = '', uid = ''] = process.argv.slice(2)
const stop = new AbortController()
const run = createProcessRunner({ runUid: 'foreign-program' })
const result = await run({
  command: 'sh',
  args: ['-c', script],
  cwd: '/',
  env: {},
  signal: stop.signal,
  escalation: { graceMs: 50, killMs: 50 },
  onStdoutLine: () => {
    process.setuid?.(Number(uid))
    stop.abort()
  },
})
console.log(JSON.stringify(result))
