/** A worker is killed while its Run executes a playbook: the Run reports the task, and the next one starts the playbook again. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadEngine } from '../src/execution/engine/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { processesOfRun, workerProcessesOf } from './support/processes.ts'
import { StackFixture } from './support/stacks.ts'

const detection = await (await loadEngine('ansible')).detect(process.env)
const skip = detection.found ? false : `needs ansible-playbook: ${detection.reasons.join(', ')}`

test('a Run that is lost names the task that it was executing, and is followed by one that succeeds', {
  skip,
  timeout: 240_000,
}, async () => {
  const dataDir = makeDataDir()
  const [started, go] = ['started', 'go'].map(name => join(dataDir, name)) as [string, string]
  const oarlock = await startOarlock(dataDir)
  try {
    const stacks = new StackFixture(oarlock.client)
    const tasks = [
      '    - name: Note the start',
      `      ansible.builtin.shell: echo x >> ${started}`,
      '    - name: Upgrade the database',
      `      ansible.builtin.shell: while [ ! -e ${go} ]; do sleep 0.2; done`,
    ]
    await stacks.create('playbook', {
      engine: 'ansible',
      source: { inline: { files: { 'site.yml': `- hosts: all\n  gather_facts: false\n  tasks:\n${tasks.join('\n')}\n` } } },
      ansible: { playbooks: ['site.yml'], check: false, inventory: { hosts: { web1: { ansible_connection: 'local' } } } },
    })
    const first = await eventually(
      async () => {
        const [run] = await stacks.runsOf('playbook')
        return run?.status?.progress?.current === 'Upgrade the database' && run
      },
      'the second task to be reported',
      60_000,
    )
    const workers = workerProcessesOf(dataDir)
    ok(workers.length > 0)
    for (const pid of workers) process.kill(pid, 'SIGKILL')
    const lost = await eventually(
      async () => {
        const run = (await stacks.runsOf('playbook')).find(({ metadata }) => metadata.uid === first.metadata.uid)
        return run?.status?.finishedAt !== undefined && run
      },
      'the Run to be lost',
      60_000,
    )
    equal(lost.status?.phase, 'Lost')
    match(lost.status?.message ?? '', /Upgrade the database/)
    deepEqual(
      (lost.status?.pendingOperations?.operations ?? []).map(({ urn }) => urn),
      ['web1: Upgrade the database'],
    )
    equal(processesOfRun(first.metadata.uid).length, 0)
    writeFileSync(go, '')
    await stacks.untilReady('playbook')
    ok(existsSync(started))
    equal(readFileSync(started, 'utf8').trim().split('\n').length, 2)
  } finally {
    await oarlock.stop()
    removeDirectory(dataDir)
  }
})
