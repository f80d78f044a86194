import type { RunRow } from '../../protocol/index.ts'
import { Badge, PlanChanges } from '../parts/badge.tsx'
import { formatWords } from '../parts/format.ts'
import { Age, Duration } from '../parts/time.tsx'
import { pathTo } from '../router.ts'

/** A short list of Runs, the newest first. */
export function RunList({
  runs,
  empty,
  withStack = false,
}: {
  readonly runs: readonly RunRow[]
  readonly empty: string
  readonly withStack?: boolean
}) {
  if (runs.length === 0) return <p class="hint">{empty}</p>
  return (
    <ul class={`plain run-list ${withStack ? 'short' : ''}`}>
      {runs.map(run => (
        <li key={run.key}>
          <Badge value={run.phase} />
          <a class="object" href={pathTo(['runs', run.namespace, run.name])} title={run.key}>
            {withStack && <span class="namespace">{run.namespace}/</span>}
            {withStack ? run.stack : run.name}
          </a>
          {!withStack && (
            <span class="dim clip what">
              {run.type}, {formatWords(run.trigger)}
            </span>
          )}
          <span class="plan-cell">{run.plan && <PlanChanges plan={run.plan} />}</span>
          <span class="number dim duration">
            <Duration fromMs={run.startedMs} toMs={run.finishedMs} />
          </span>
          <span class="number dim">
            <Age ms={run.finishedMs ?? run.startedMs ?? run.createdMs} />
          </span>
        </li>
      ))}
    </ul>
  )
}
