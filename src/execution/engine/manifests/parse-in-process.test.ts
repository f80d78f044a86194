import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { followStartedProcesses } from '../../../../test/support/started-processes.ts'
import { parseInProcess } from './parse-in-process.ts'

const { signal } = new AbortController()
const configMap = (name: string, keys: number) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata:\n${Array.from({ length: keys }, (_, index) => `  k${index}: v\n`).join('')}`
const file = (text: string) => [{ path: 'app.yaml', text }]

test('parses short and long sources alike, long ones in a process', async t => {
  const processes = followStartedProcesses()
  t.after(processes.stop)
  for (const keys of [1, 10_000]) {
    const [manifest] = await parseInProcess(file(configMap('a', keys)), { signal })
    equal(manifest?.location, 'app.yaml, ConfigMap a')
    equal(Object.keys(manifest?.object.data as object).length, keys)
  }
  // A thread could end the worker: see LimitedProcess.
  deepEqual(
    processes.all.map(child => child.spawnargs.at(-1)),
    ['oarlock-manifests'],
  )
  deepEqual(processes.running(), [])
})

test('the event loop is not blocked by a long source', async () => {
  let turns = 0
  const timer = setInterval(() => turns++, 5)
  await parseInProcess(file(configMap('a', 60_000)), { signal })
  clearInterval(timer)
  ok(turns > 5, `${turns} turns`)
})

test('an invalid long source has the error of a short one', async () => {
  const [short, long] = await Promise.all(
    [1, 10_000].map(keys =>
      parseInProcess(file(`${configMap('a', keys)}---\nkind: Secret\n`), { signal }).catch(error => ({ ...error, message: error.message })),
    ),
  )
  deepEqual(long, short)
})

test('a source that takes too long is rejected, and an interrupted Run ends', async () => {
  const long = file(configMap('a', 60_000))
  await rejects(parseInProcess(long, { signal, timeoutMs: 1 }), {
    reason: 'InvalidConfiguration',
    retryable: false,
    message: /takes more than 0.001 s/,
  })
  await rejects(parseInProcess(long, { signal: AbortSignal.abort() }), { reason: 'Interrupted' })
})
