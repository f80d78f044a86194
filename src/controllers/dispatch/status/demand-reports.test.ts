import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { epochMs, testPool } from '../objects.testing.ts'
import { DemandReports } from './demand-reports.ts'

const pools = new Map([['p', testPool('p')]])

/** What is reported at this time: `queued/startable`, or `none`; undefined: nothing is written. */
function reporter() {
  const reports = new DemandReports()
  const at = (ms: number, queued: number, startable = queued) => {
    const demand = new Map(queued === 0 ? [] : [['p', { queued, startable }]])
    const { actions, requeueAfterMs } = reports.decide({
      ...{ pools, demand, isPending: () => false },
      now: { monotonicMs: ms, wallMs: epochMs + ms },
    })
    const [report] = actions.flatMap(action => (action.kind === 'ReportDemand' ? [action.report] : []))
    return { report: report === null ? 'none' : report && `${report.queued}/${report.startable}`, requeueAfterMs }
  }
  return { reports, at }
}

test('a new leader removes the report of the previous one, and writes nothing more while no Run waits', () => {
  const { at } = reporter()
  equal(at(0, 0).report, 'none')
  deepEqual(at(100_000, 0), { report: undefined, requeueAfterMs: Number.POSITIVE_INFINITY })
})

test('what starts workers is reported at most once a second, the count alone every 3 seconds, and what does not change every minute', () => {
  const { at } = reporter()
  at(0, 0)
  equal(at(2_000, 5).report, '5/5')
  deepEqual(at(2_100, 4), { report: undefined, requeueAfterMs: 900 })
  equal(at(3_000, 3).report, '3/3')
  deepEqual(at(4_000, 4, 3), { report: undefined, requeueAfterMs: 2_000 })
  equal(at(6_000, 6, 3).report, '6/3')
  deepEqual(at(7_000, 6, 3), { report: undefined, requeueAfterMs: 59_000 })
  equal(at(66_000, 6, 3).report, '6/3')
  equal(at(67_000, 0).report, 'none')
})

test('a report that was not written is written again a second later', () => {
  for (const outcome of ['Failed', 'Rejected'] as const) {
    const { reports, at } = reporter()
    equal(at(0, 1).report, '1/1')
    reports.writeSettled('p', outcome)
    deepEqual(at(20, 1), { report: undefined, requeueAfterMs: 980 })
    equal(at(1_000, 1).report, '1/1')
    reports.writeSettled('p', 'Written')
    equal(at(2_000, 1).report, undefined)
  }
})

test('a report is unanswered from a failed write until one that the server answers', () => {
  const { reports, at } = reporter()
  at(0, 1)
  equal(reports.isUnanswered('p'), false)
  reports.writeSettled('p', 'Failed')
  equal(reports.isUnanswered('p'), true)
  at(1_000, 1)
  equal(reports.isUnanswered('p'), true, 'the next one is being written')
  for (const outcome of ['Written', 'Rejected'] as const) {
    reports.writeSettled('p', 'Failed')
    reports.writeSettled('p', outcome)
    equal(reports.isUnanswered('p'), false, outcome)
  }
})
