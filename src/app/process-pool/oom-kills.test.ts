import { equal } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type OomKillCount, OomKills } from './oom-kills.ts'

function setUp(t: TestContext, scope: OomKillCount['scope']) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let nowMs = 1e6
  const count = { kills: 7, scope }
  const oomKills = new OomKills(
    () => ({ ...count }),
    () => nowMs,
  )
  const wait = (ms: number): void => {
    nowMs += ms
    t.mock.timers.tick(ms)
  }
  t.after(() => oomKills.setWorkers(0))
  return { oomKills, wait, kill: () => void count.kills++ }
}

for (const scope of ['Cgroup', 'Machine'] as const) {
  test(`${scope}: a kill shortly before the end of the only worker may have been its own, an earlier one was not`, t => {
    const { oomKills, wait, kill } = setUp(t, scope)
    kill()
    oomKills.setWorkers(1)
    equal(oomKills.mayHaveKilledWorker(), false, 'before it was started')
    kill()
    equal(oomKills.mayHaveKilledWorker(), true)
    wait(9_000)
    equal(oomKills.mayHaveKilledWorker(), true, 'a process with much memory takes a while to end')
    wait(2_000)
    equal(oomKills.mayHaveKilledWorker(), false)
    kill()
    // Noticed while the worker runs.
    for (let i = 0; i < 4; i++) wait(5_000)
    equal(oomKills.mayHaveKilledWorker(), false)
  })

  test(`${scope}: a kill while there are other workers ${scope === 'Cgroup' ? 'may have been of this one' : 'is not assigned to this one'}`, t => {
    const { oomKills, wait, kill } = setUp(t, scope)
    oomKills.setWorkers(1)
    oomKills.setWorkers(2)
    wait(60_000)
    kill()
    equal(oomKills.mayHaveKilledWorker(), scope === 'Cgroup')
    oomKills.setWorkers(1)
    equal(oomKills.mayHaveKilledWorker(), scope === 'Cgroup', 'the other one has just ended')
    wait(60_000)
    equal(oomKills.mayHaveKilledWorker(), false)
    kill()
    equal(oomKills.mayHaveKilledWorker(), true, 'the other one has ended long ago')
  })
}
