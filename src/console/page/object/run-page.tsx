import type { RunFacts } from '../../protocol/index.ts'
import { Actions } from '../parts/actions.tsx'
import { PlanChanges, Progress } from '../parts/badge.tsx'
import { formatNumber, formatWords } from '../parts/format.ts'
import { Age, Duration } from '../parts/time.tsx'
import { pathTo } from '../router.ts'
import { useView } from '../stream/use-view.ts'
import { Conditions } from './conditions.tsx'
import { Facts } from './facts.tsx'
import { ObjectHeader } from './object-header.tsx'
import { ObjectState } from './object-state.tsx'

export function RunPage({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  const view = useView<RunFacts>({ kind: 'run', namespace, name })
  const facts = view.facts.value
  const { row, object } = facts ?? {}
  if (!row) return <ObjectState kind="Run" name={`${namespace}/${name}`} error={view.error.value} isRead={facts !== undefined} />
  return (
    <article class="object-page">
      <ObjectHeader namespace={namespace} name={name} state={row.phase} lead={row.message ?? row.reason ?? ''} />
      <div class="columns">
        <section class="panel" aria-labelledby="facts-title">
          <h2 id="facts-title">Run</h2>
          <Facts
            facts={[
              ['Stack', <a href={pathTo(['stacks', namespace, row.stack])}>{row.stack}</a>],
              ['Type', row.type],
              ['Trigger', formatWords(row.trigger)],
              ['Engine', row.engine],
              ['Tenant', row.tenant],
              ['Pool', row.pool],
              ['Worker', row.worker && <a href={pathTo(['workers'], { filter: `name:${row.worker}` })}>{row.worker}</a>],
              ['Position in the queue', row.queuePosition === undefined ? undefined : formatNumber(row.queuePosition)],
              ['Progress', row.progress && <Progress {...row.progress} />],
              ['Plan', row.plan && <PlanChanges plan={row.plan} />],
              [
                'Queued',
                <>
                  <Age ms={row.createdMs} /> ago
                </>,
              ],
              ['Duration', row.startedMs && <Duration fromMs={row.startedMs} toMs={row.finishedMs} />],
            ]}
          />
        </section>
        <section class="panel" aria-labelledby="actions-title">
          <h2 id="actions-title">Actions</h2>
          <Actions target={{ kind: 'runs', namespace, name }} version={row.phase} />
        </section>
      </div>
      <section class="panel" aria-labelledby="conditions-title">
        <h2 id="conditions-title">Conditions</h2>
        <Conditions object={object} />
      </section>
    </article>
  )
}
