import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sourceDirectory } from './source-files.ts'
import { modulePath, RequestThread } from './worker-thread.ts'

const script = 'kubernetes/util/echo-thread.testing'

test('a request that the thread throws on rejects, and its end is reported once', async () => {
  const ends: Error[] = []
  const thread = new RequestThread<string, string>(script, { onEnd: reason => ends.push(reason) })
  equal(await thread.request('hello'), 'hello')
  await rejects(thread.request('throw'), /echo-thread\.testing failed: asked to throw/)
  await thread.terminate()
  equal(ends.length, 1)
  await rejects(thread.request('hello'), /failed: asked to throw/)
})

test('terminating rejects the pending request', async () => {
  const thread = new RequestThread<string, string>(script)
  const pending = thread.request('never').catch(error => error.message)
  await thread.terminate()
  match(await pending, /has ended/)
})

test('every module that a thread or process starts with exists', () => {
  const paths = globSync('**/*.ts', { cwd: sourceDirectory, exclude: ['**/*.test.ts'] }).flatMap(file =>
    [
      ...readFileSync(join(sourceDirectory, file), 'utf8').matchAll(
        /(?:startThread|modulePath|RequestThread|LimitedThread|LimitedProcess)(?:<[^(]*>)?\(\s*'([^']+)'/g,
      ),
    ].map(([, path = '']) => path),
  )
  ok(paths.length >= 7, `found only ${paths.length}`)
  deepEqual(
    paths.filter(path => !existsSync(modulePath(path))),
    [],
  )
})
