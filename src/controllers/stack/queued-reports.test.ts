import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { QueuedReports } from './queued-reports.ts'

class Fixture {
  nowMs = 0
  readonly granted: string[] = []
  readonly #timers: { action: () => void; atMs: number }[] = []
  readonly reports = new QueuedReports({
    rate: { qps: 5, burst: 2 },
    reconcile: key => void this.granted.push(`${key} ${this.nowMs}`),
    nowMs: () => this.nowMs,
    schedule: (action, ms) => void this.#timers.push({ action, atMs: this.nowMs + ms }),
  })

  get timers(): number {
    return this.#timers.length
  }

  advance(ms: number): string[] {
    const endMs = this.nowMs + ms
    for (;;) {
      const next = this.#timers.sort((a, b) => a.atMs - b.atMs)[0]
      if (!next || next.atMs > endMs) break
      this.#timers.shift()
      this.nowMs = next.atMs
      next.action()
    }
    this.nowMs = endMs
    return this.granted.splice(0)
  }
}

test('as many as the burst are reported immediately, then the newest first at the rate', () => {
  const { reports } = new Fixture()
  const fixture = new Fixture()
  for (const key of ['a', 'b', 'c', 'd', 'e']) fixture.reports.add(key)
  deepEqual(fixture.advance(0), ['a 0', 'b 0'])
  fixture.advance(100)
  fixture.reports.add('newest')
  deepEqual(fixture.advance(1_000), ['newest 200', 'e 400', 'd 600', 'c 800'])
  ok(fixture.reports.mayReport('c'))
  fixture.reports.delete('c')
  ok(!fixture.reports.mayReport('c') && !reports.mayReport('a'))
  deepEqual(fixture.timers, 0)
})

test('a Stack whose Run has started meanwhile uses no report, and one that is due twice uses one', () => {
  const fixture = new Fixture()
  for (const key of ['a', 'b', 'c', 'd', 'd', 'e']) fixture.reports.add(key)
  fixture.reports.delete('e')
  deepEqual(fixture.advance(1_000), ['a 0', 'b 0', 'd 200', 'c 400'])
  fixture.reports.delete('d')
  fixture.reports.add('d')
  deepEqual(fixture.advance(1_000), ['d 1000'])
})

test('what is no longer due is forgotten while others wait', () => {
  const fixture = new Fixture()
  for (let index = 0; index < 1_000; index++) fixture.reports.add(`${index}`)
  for (let index = 0; index < 990; index++) fixture.reports.delete(`${index}`)
  deepEqual(fixture.advance(200).at(-1), '999 200')
})
