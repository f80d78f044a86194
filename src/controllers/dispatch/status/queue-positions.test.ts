import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import { testRun } from '../objects.testing.ts'
import { RunQueue, requestOf } from '../queue/index.ts'
import { makeRunRecord, type RunRecord } from '../run-record.ts'
import type { PendingReasons } from './pending-reason.ts'
import { QueuePositions } from './queue-positions.ts'

/** A queue of Runs `000`, `001` … in this order, and the reports that are written for it. */
class Reports {
  nowMs = 0
  reason = 'NoWorkerAvailable'
  readonly written = new Map<string, number>()
  readonly #queue = new RunQueue()
  readonly #runs = new Map<string, RunRecord>()
  readonly #positions = new QueuePositions()

  add(count: number): void {
    for (const _ of Array.from({ length: count })) {
      const run: Run = testRun(String(this.#runs.size).padStart(3, '0'), { atMs: this.nowMs })
      this.#runs.set(`ns/${run.metadata.name}`, makeRunRecord(run))
      this.#queue.put({ ...requestOf(run), sinceMs: this.nowMs })
    }
  }

  /** Removes the first Runs, as a placement does. */
  place(count: number): void {
    for (const key of [...this.#runs.keys()].slice(0, count)) {
      this.#queue.remove(key)
      this.#runs.delete(key)
    }
  }

  pass(seconds: number, eachSecond: () => void = () => undefined): void {
    for (let second = 0; second < seconds; second++) {
      this.nowMs += 1_000
      eachSecond()
      const { actions } = this.#positions.decide({
        ...{ queue: this.#queue, runOf: key => this.#runs.get(key), isPending: () => false, limit: 1_000, nowMs: this.nowMs },
        reasons: () => ({ of: () => ({ reason: this.reason, message: '' }) }) as unknown as PendingReasons,
      })
      for (const action of actions) {
        if (action.kind !== 'PatchRunStatus') throw new Error(`unexpected ${action.kind}`)
        const record = this.#runs.get(`ns/${action.object.name}`)!
        const { reason, message, queuePosition } = action.status
        Object.assign(record, { reason, message, queuePosition })
        this.written.set(action.object.name, (this.written.get(action.object.name) ?? 0) + 1)
      }
    }
  }
}

test('a Run gets its first report after 2 s, another reason after 5 s and another position after 30 s', () => {
  const reports = new Reports()
  reports.add(2)
  reports.pass(1)
  equal(reports.written.size, 0)
  reports.pass(1)
  deepEqual(
    [...reports.written],
    [
      ['000', 1],
      ['001', 1],
    ],
  )
  reports.place(1)
  reports.pass(29)
  equal(reports.written.get('001'), 1)
  reports.pass(1)
  equal(reports.written.get('001'), 2)
  reports.reason = 'PoolLimit'
  reports.pass(4)
  equal(reports.written.get('001'), 2)
  reports.pass(1)
  equal(reports.written.get('001'), 3)
})

test('in a queue of 1,000 that moves by 5 Runs a second, only the first ones get a report', () => {
  const reports = new Reports()
  reports.add(1_000)
  reports.pass(190, () => reports.place(5))
  deepEqual([...new Set(reports.written.values())], [1])
  equal(
    [...reports.written.keys()].every(name => Number(name) < 120),
    true,
  )
})
