/** Limits of sandboxed programs that hide from who measures them. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findRunProcesses } from '../process/index.ts'
import { endFirstThread, open, skip } from './isolated-run.testing.ts'

// The worker measures.
process.env.OARLOCK_CGROUP = '/nonexistent'

const mebibyte = 2 ** 20
/** For dash: a variable of 100 MB. */
const allocateMemory = 'x=$(head -c 100000000 /dev/zero | tr "\\0" x)'

test('Sandbox: processes that clear their environment count against the limits on memory and processes', { skip }, async t => {
  const memory = await open(t, 'Sandbox', { limits: { memoryBytes: 64 * mebibyte } })
  const result = await memory.run(`exec env -i /usr/bin/setsid -w /bin/sh -c '${allocateMemory}; sleep 60; echo survived'`)
  assert.deepEqual(result.lines, [])
  assert.equal(memory.exceeded[0]?.kind, 'Memory')
  const pids = await open(t, 'Sandbox', { limits: { pids: 12 } })
  await pids.run(`exec env -i /bin/sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do setsid sleep 60 & done; wait'`)
  assert.equal(pids.exceeded[0]?.kind, 'Pids')
})

test('Sandbox: the memory of a process whose first thread has ended counts', {
  skip: skip || endFirstThread.skip,
}, async t => {
  const { run, exceeded } = await open(t, 'Sandbox', { limits: { memoryBytes: 64 * mebibyte } })
  const { lines } = await run(endFirstThread.script('x = b"x" * 100000000; time.sleep(60); print("survived", flush=True)'))
  assert.deepEqual(lines, [])
  assert.equal(exceeded[0]?.kind, 'Memory')
})

for (const level of ['Sandbox', 'Process'] as const)
  test(`${level}: a sandboxed program with the UID of the Run in its environment does not count as one of its processes`, {
    skip,
  }, async t => {
    const victim = await open(t, level, { limits: { memoryBytes: 64 * mebibyte } })
    assert.equal(victim.isolation.effective.limits.memory, 'Watched')
    const attacker = await open(t, 'Sandbox')
    const allocate = `exec env -i OARLOCK_RUN_UID=${victim.runUid} /bin/sh -c '${allocateMemory}; echo allocated; until [ -e stop ]; do sleep 0.01; done'`
    const allocated = Promise.withResolvers<void>()
    const attack = attacker.run(allocate, () => allocated.resolve())
    await allocated.promise
    assert.equal(findRunProcesses(victim.runUid).length > 0, true, 'it is found by its environment')
    // More processes than before have been measured, so what the attacker has allocated would have been, too.
    const victimRun = victim.run('for i in 1 2 3 4 5; do sleep 60 & done; until [ -e stop ]; do sleep 0.01; done')
    while (victim.isolation.usage().peakPids < 6 && victim.exceeded.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    writeFileSync(join(victim.directory.work, 'stop'), '')
    writeFileSync(join(attacker.directory.work, 'stop'), '')
    await Promise.all([attack, victimRun])
    assert.deepEqual(victim.exceeded, [])
  })
