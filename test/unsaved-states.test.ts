/** States that the stores have not accepted are counted while they are on the host of a worker only. */
import { match } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { workerPoolResource, workerResource } from '../src/api/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'

test('a state that was kept is in the metrics of oarlock up, and in the status of a worker of its host', async t => {
  const dataDir = makeDataDir()
  const oarlock = await startOarlock(dataDir)
  t.after(async () => {
    await oarlock.stop()
    removeDirectory(dataDir)
  })
  const metric = async () => {
    const response = await fetch(`${oarlock.httpUrl}/metrics`, { headers: oarlock.statusHeaders })
    return (await response.text()).split('\n').find(line => line.startsWith('oarlock_unsaved_states')) ?? ''
  }
  match(await metric(), new RegExp(`{host="${hostname()}"} 0$`))

  // As the supervisor of a worker leaves it (docs/state.md#recovery).
  const kept = join(dataDir, 'runs', randomUUID())
  mkdirSync(join(kept, 'scratch'), { recursive: true })
  writeFileSync(join(kept, 'scratch', 'terraform.tfstate'), '{}')
  writeFileSync(join(kept, 'unsaved-state'), 'the store did not answer\n')
  match(await metric(), /} 1$/)
  await oarlock.client.resource(workerPoolResource).patch('default', { spec: { lifecycle: 'Warm', min: 1 } }, { type: 'merge' })
  await eventually(async () => {
    const { items } = await oarlock.client.resource(workerResource).listAll()
    return items.some(({ status }) => status?.unsavedStates === 1)
  }, 'a worker to report it')
})
