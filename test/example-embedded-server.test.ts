import { deepEqual, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { createClient } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'

test('greetings.ts serves its own API, reconciles its kind, and stops gracefully', async () => {
  const dataDir = makeDataDir()
  const example = join(import.meta.dirname, '..', 'examples', 'embedded-server', 'greetings.ts')
  const child = spawn(process.execPath, [example, dataDir, '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let lastLine = ''
    for await (const line of createInterface({ input: child.stdout })) {
      lastLine = line
      if (line.startsWith('kubectl')) break
    }
    match(lastLine, /^kubectl --kubeconfig .*kubeconfig get greetings$/)
    const client = await createClient({ kubeconfig: join(dataDir, 'kubeconfig') })
    const greetings = client.resource(await client.discover('example.com/v1', 'Greeting'))
    await greetings.create({ metadata: { name: 'moon' }, spec: { to: 'moon' } })
    const status = await eventually(async () => (await greetings.get('moon')).status, 'an answer')
    deepEqual(status, { text: 'Hello, moon!' })
    await client.close()
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    equal(code, 0)
  } finally {
    child.kill('SIGKILL')
    removeDirectory(dataDir)
  }
})
