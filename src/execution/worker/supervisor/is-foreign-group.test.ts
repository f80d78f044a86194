import { equal } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { isForeignGroup } from './is-foreign-group.ts'

const started: ChildProcess[] = []
after(() => {
  for (const child of started) child.kill('SIGKILL')
})

async function group(uid?: string): Promise<number> {
  const env = { PATH: process.env.PATH, ...(uid !== undefined && { OARLOCK_RUN_UID: uid }) }
  const child = spawn('sleep', ['3600'], { detached: true, stdio: 'ignore', env })
  started.push(child)
  await once(child, 'spawn')
  return child.pid!
}

const isLinux = process.platform === 'linux'
const other = process.ppid

test('a child of the worker is of its Run, also without the Run in its environment', async () => {
  equal(isForeignGroup(await group(), { uid: 'a', workerPid: process.pid }), false)
})

test('of a worker that has exited: the process has the Run in its environment', async () => {
  equal(isForeignGroup(await group('a'), { uid: 'a', workerPid: other }), false)
})

for (const uid of [undefined, 'b', 'ab', 'aa']) {
  test(`a process of another parent with ${uid ?? 'no Run'} in its environment is foreign`, async () => {
    equal(isForeignGroup(await group(uid), { uid: 'a', workerPid: other }), isLinux)
  })
}

test('a group without a leader may be of the Run', async () => {
  const pid = await group('b')
  const child = started.at(-1)!
  child.kill('SIGKILL')
  await once(child, 'exit')
  equal(isForeignGroup(pid, { uid: 'a', workerPid: other }), false)
})
