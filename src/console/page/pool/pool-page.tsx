import type { PoolFacts, PoolHistoryFacts, PoolRow, poolSeries, Scaling } from '../../protocol/index.ts'
import { Conditions } from '../object/conditions.tsx'
import { Facts } from '../object/facts.tsx'
import { ObjectState } from '../object/object-state.tsx'
import { Badge } from '../parts/badge.tsx'
import { type ChartDefinition, ChartList } from '../parts/chart.tsx'
import { Command } from '../parts/command.tsx'
import { formatNumber } from '../parts/format.ts'
import { Age } from '../parts/time.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { navigate, pathTo, route } from '../router.ts'
import { useView } from '../stream/use-view.ts'
import { scalingReason } from './scaling-text.ts'

type PoolObject = {
  readonly spec?: { readonly drainGrace?: string; readonly idleTimeout?: string; readonly slots?: number; readonly namespace?: string }
  readonly status?: { readonly problem?: string; readonly outdated?: number; readonly starting?: number }
}

const charts: readonly ChartDefinition<(typeof poolSeries)[number]>[] = [
  {
    title: 'Workers',
    series: [
      { name: 'desired', label: 'desired', colour: '--attention-mark' },
      { name: 'workers', label: 'registered', colour: '--idle-mark' },
      { name: 'busy', label: 'busy', colour: '--busy-mark' },
    ],
    format: formatNumber,
  },
  { title: 'Runs in the queue', series: [{ name: 'queued', label: 'queued', colour: '--attention-mark' }], format: formatNumber },
]
const periods = [
  { minutes: 60, label: 'Hour' },
  { minutes: 1_440, label: 'Day' },
] as const

/** A pool: its size over time, why it wanted that size, and what keeps it from starting workers. */
export function PoolPage({ name }: { readonly name: string }) {
  const view = useView<PoolFacts>({ kind: 'pool', name })
  const facts = view.facts.value
  if (!facts?.row) return <ObjectState kind="Pool" name={name} error={view.error.value} isRead={facts !== undefined} />
  const { row } = facts
  const { spec = {}, status = {} } = (facts.object ?? {}) as PoolObject
  return (
    <article class="object-page">
      <header class="page-header">
        <h1>{name}</h1>
        {row.ready ? <Badge value="Ready" /> : <Badge value={row.reason ?? 'NotReady'} tone="attention" />}
      </header>
      <p class="lead" aria-live="polite">
        {visibleText(status.problem ?? (row.ready ? '' : (row.message ?? '')))}
      </p>
      <div class="columns">
        <section class="panel" aria-labelledby="facts-title">
          <h2 id="facts-title">Pool</h2>
          <Facts
            facts={[
              ['Mode', row.mode],
              ['Lifecycle', row.lifecycle],
              ['Desired', `${formatNumber(row.desired)}: ${currentReason(row)}`],
              [
                'Workers',
                <a
                  href={pathTo(['workers'], { filter: `pool:${name}` })}
                >{`${formatNumber(row.workers)}, ${formatNumber(row.busy)} busy`}</a>,
              ],
              ['Starting', status.starting ? formatNumber(status.starting) : undefined],
              ['Queued', <a href={pathTo(['queue'], { filter: `pool:${name}` })}>{formatNumber(row.queued)}</a>],
              ['Size', `${formatNumber(row.min)} to ${formatNumber(row.max)} workers, ${formatNumber(spec.slots ?? 1)} Run at a time each`],
              ['Outdated', status.outdated ? formatNumber(status.outdated) : undefined],
              ['Grace of a drain', spec.drainGrace],
              ['Idle timeout', spec.idleTimeout],
            ]}
          />
          <p>Drain all its workers:</p>
          <Command text={`oarlock drain --pool ${name}`} />
        </section>
        <section class="panel" aria-labelledby="conditions-title">
          <h2 id="conditions-title">Conditions</h2>
          <Conditions object={facts.object} />
        </section>
      </div>
      <PoolHistory name={name} />
    </article>
  )
}

function PoolHistory({ name }: { readonly name: string }) {
  const minutes = route.value.query.get('period') === 'day' ? 1_440 : 60
  const view = useView<PoolHistoryFacts>({ kind: 'history', minutes, pool: name })
  const facts = view.facts.value
  return (
    <div class="columns">
      <section class="panel" aria-labelledby="size-title">
        <h2 id="size-title">Size</h2>
        <div class="log-tools">
          {periods.map(period => (
            <button
              key={period.label}
              type="button"
              class="small"
              aria-pressed={period.minutes === minutes}
              onClick={() => navigate(pathTo(['pools', name], period.minutes === 60 ? {} : { period: 'day' }), { replace: true })}
            >
              {period.label}
            </button>
          ))}
        </div>
        {facts ? <ChartList charts={charts} facts={facts} /> : <div class="loading" aria-busy="true" />}
      </section>
      <section class="panel" aria-labelledby="scaling-title">
        <h2 id="scaling-title">Scale decisions</h2>
        <Scalings scalings={facts?.scalings ?? []} />
        <p class="hint">
          A pool reports the number of workers that it wants at most every 3 s. A change that ends before is neither here nor in the chart.
        </p>
      </section>
    </div>
  )
}

const mostShown = 50

function Scalings({ scalings }: { readonly scalings: readonly Scaling[] }) {
  if (scalings.length === 0) return <p class="hint">The pool has reported no change of the number of workers that it wants.</p>
  return (
    <ul class="plain scalings">
      {scalings
        .toReversed()
        .slice(0, mostShown)
        .map((scaling, index) => (
          <li key={`${scaling.atMs} ${index}`}>
            <span class={`badge ${scaling.to > scaling.from ? 'busy' : 'idle'}`}>
              {formatNumber(scaling.from)} → {formatNumber(scaling.to)}
            </span>
            <span>{scalingReason(scaling)}</span>
            <span class="number dim">
              <Age ms={scaling.atMs} />
            </span>
          </li>
        ))}
    </ul>
  )
}

const currentReason = ({ desired, ...row }: PoolRow) => scalingReason({ to: desired, ...row })
