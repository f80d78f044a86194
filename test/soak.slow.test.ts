import { deepEqual, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { growthPerRound, soak } from './support/soak.ts'

const warmUpRounds = 5
const rounds = 10

/** The short form of `npm run bench -- soak`, which runs for 10 minutes. */
test('a controller under faults leaks no heap, handles or listeners', async () => {
  const report = await soak(done => done.length === warmUpRounds + rounds)
  const settled = report.rounds.slice(warmUpRounds)
  const heapMb = settled.map(round => round.heapMb)
  // The 100 objects of a round take about 300 KB: leaking a tenth of a round would be detected.
  ok(growthPerRound(heapMb) < 0.05, `heap grows by ${growthPerRound(heapMb)} MB per round: ${heapMb.map(mb => mb.toFixed(2))}`)
  ok(growthPerRound(settled.map(({ resources }) => resources)) < 0.5, JSON.stringify(settled))
  ok(
    settled.every(({ listeners, cached, queued }) => listeners <= 4 && cached === 0 && queued === 0),
    JSON.stringify(settled),
  )
  ok(report.faults > 50, `${report.faults} faults`)
  ok(report.resourcesAfter <= report.resourcesBefore, `${report.resourcesBefore} open resources before, ${report.resourcesAfter} after`)
  deepEqual(report.warnings, [])
})
