import type { HistoryFacts, historySeries } from '../../protocol/index.ts'
import { type ChartDefinition, ChartList } from '../parts/chart.tsx'
import { formatDuration, formatNumber } from '../parts/format.ts'
import { useView } from '../stream/use-view.ts'

const charts: readonly ChartDefinition<(typeof historySeries)[number]>[] = [
  {
    title: 'Runs',
    series: [
      { name: 'queueLength', label: 'queued', colour: '--attention-mark' },
      { name: 'activeRuns', label: 'active', colour: '--busy-mark' },
    ],
    format: formatNumber,
  },
  {
    title: 'Oldest Run in the queue',
    series: [{ name: 'oldestQueuedMs', label: 'wait', colour: '--attention-mark' }],
    format: formatDuration,
    atLeast: 10_000,
  },
  {
    title: 'Runs that ended',
    series: [
      { name: 'runsSucceeded', label: 'succeeded', colour: '--good-mark' },
      { name: 'runsFailed', label: 'failed', colour: '--bad-mark' },
    ],
    format: formatNumber,
  },
  {
    title: 'Workers',
    series: [
      { name: 'workers', label: 'all', colour: '--idle-mark' },
      { name: 'busyWorkers', label: 'busy', colour: '--busy-mark' },
    ],
    format: formatNumber,
  },
]

/** The control plane's own history. */
export function Charts({ minutes }: { readonly minutes: number }) {
  const view = useView<HistoryFacts>({ kind: 'history', minutes })
  const facts = view.facts.value
  const error = view.error.value
  if (error) return <p class="hint">{error.message}</p>
  if (!facts) return <div class="loading" aria-busy="true" />
  return <ChartList charts={charts} facts={facts} />
}
