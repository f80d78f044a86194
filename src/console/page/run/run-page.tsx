import { useEffect, useMemo } from 'preact/hooks'
import type { RunFacts, RunRow } from '../../protocol/index.ts'
import { LogPanel } from '../log/log-panel.tsx'
import { LogReader } from '../log/log-reader.ts'
import { Conditions } from '../object/conditions.tsx'
import { Facts } from '../object/facts.tsx'
import { ObjectHeader } from '../object/object-header.tsx'
import { ObjectState } from '../object/object-state.tsx'
import { Actions } from '../parts/actions.tsx'
import { PlanChanges, Progress } from '../parts/badge.tsx'
import { formatBytes, formatNumber, formatSeconds, formatWords, shortDigest } from '../parts/format.ts'
import { StoredPlanText } from '../parts/plan-text.tsx'
import { Age, Duration } from '../parts/time.tsx'
import { pathTo } from '../router.ts'
import { useView } from '../stream/use-view.ts'
import { Attempts } from './attempts.tsx'
import { ResourceList } from './resource-list.tsx'
import type { RunObject } from './run-object.ts'
import { runPhases } from './run-phases.ts'
import { Timeline } from './timeline.tsx'

/** A tick of the kernel's clock. */
const leastCpuSeconds = 0.01

export function RunPage({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  const view = useView<RunFacts>({ kind: 'run', namespace, name })
  const facts = view.facts.value
  if (!facts?.row) return <ObjectState kind="Run" name={`${namespace}/${name}`} error={view.error.value} isRead={facts !== undefined} />
  return <KnownRun facts={facts} row={facts.row} />
}

function KnownRun({ facts, row }: { readonly facts: RunFacts; readonly row: RunRow }) {
  const { namespace, name } = row
  const { spec = {}, status = {} } = (facts.object ?? {}) as RunObject
  const hasEnded = status.finishedAt !== undefined || row.finishedMs !== undefined
  const reader = useMemo(() => new LogReader({ namespace, name }, hasEnded), [])
  useEffect(() => () => reader.close(), [])
  useEffect(() => {
    if (hasEnded) reader.end()
  }, [hasEnded])
  const { usage, isolation, outputs = {}, conditions = [] } = status
  const isSampled = usage !== undefined && usage.peakMemoryBytes > 0
  const current = status.progress?.current
  const counts = status.plan
  const hasPlan =
    spec.approvedPlan !== undefined || (counts !== undefined && (row.changed || counts.add + counts.change + counts.destroy > 0))
  const plan = hasPlan && (
    <section class="panel" aria-labelledby="plan-title">
      <h2 id="plan-title">{spec.approvedPlan ? 'Approved plan' : 'Plan'}</h2>
      <StoredPlanText namespace={namespace} runName={name} />
    </section>
  )
  return (
    <article class="object-page run-page">
      <ObjectHeader namespace={namespace} name={name} state={row.phase} lead={status.message ?? row.message ?? row.reason ?? ''}>
        <p class="dim">
          {row.type} of Stack <a href={pathTo(['stacks', namespace, row.stack])}>{row.stack}</a>
        </p>
      </ObjectHeader>
      <Attempts attempts={facts.attempts} current={row.key} />
      <div class="columns">
        <section class="panel" aria-labelledby="timeline-title">
          <h2 id="timeline-title">Timeline</h2>
          <Timeline parts={runPhases(facts)} />
          {row.progress && (
            <p class="current">
              <Progress {...row.progress} /> <span class="dim clip">{current}</span>
            </p>
          )}
          {row.phase === 'Queued' && <Waits row={row} />}
        </section>
        <section class="panel" aria-labelledby="actions-title">
          <h2 id="actions-title">Actions</h2>
          <Actions target={{ kind: 'runs', namespace, name }} version={`${row.phase} ${spec.cancel}`} />
        </section>
      </div>
      {row.type === 'Plan' && plan}
      <LogPanel
        run={row}
        reader={reader}
        hasStarted={row.startedMs !== undefined || row.phase !== 'Queued'}
        hasEnded={hasEnded}
        stored={status.log}
      />
      {row.type !== 'Plan' && plan}
      <div class="columns">
        <section class="panel" aria-labelledby="facts-title">
          <h2 id="facts-title">Run</h2>
          <Facts
            facts={[
              ['Stack', <a href={pathTo(['stacks', namespace, row.stack])}>{row.stack}</a>],
              ['Type', `${row.type}${spec.planMode === undefined ? '' : ` of a ${spec.planMode.toLowerCase()}`}`],
              ['Trigger', formatWords(row.trigger)],
              ['Recovers', spec.recoveredFrom && <RunLink namespace={namespace} name={spec.recoveredFrom} />],
              ['Superseded by', status.supersededBy && <RunLink namespace={namespace} name={status.supersededBy} />],
              ['Applies the plan of', row.planRun && <RunLink namespace={namespace} name={row.planRun} />],
              ['Applied by', facts.applyRun && <RunLink namespace={namespace} name={facts.applyRun.name} />],
              ['Engine', row.engine],
              ['Revision', spec.revision && <code title={spec.revision}>{shortDigest(spec.revision)}</code>],
              ['Tenant', row.tenant],
              ['Pool', <a href={pathTo(['pools', row.pool])}>{row.pool}</a>],
              ['Worker', facts.hasWorker ? <a href={pathTo(['workers'], { filter: `name:${row.worker}` })}>{row.worker}</a> : row.worker],
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
        <section class="panel" aria-labelledby="results-title">
          <h2 id="results-title">Result and use</h2>
          <Facts
            facts={[
              ['Plan', row.plan && <PlanChanges plan={row.plan} />],
              ['Changed', row.changed === undefined ? undefined : row.changed ? 'yes' : 'no'],
              ['Resources', status.resources === undefined ? undefined : formatNumber(status.resources)],
              ['State version', status.stateVersion === undefined ? undefined : formatNumber(status.stateVersion)],
              ['Outputs', Object.keys(outputs).length > 0 && <Outputs outputs={outputs} />],
              ['CPU time', usage && (usage.cpuSeconds < leastCpuSeconds ? '<10ms' : formatSeconds(usage.cpuSeconds))],
              ['Peak memory', isSampled && formatBytes(usage.peakMemoryBytes)],
              ['Peak processes', isSampled && formatNumber(usage.peakPids)],
              ['Peak disk', usage?.peakDiskBytes === undefined ? undefined : formatBytes(usage.peakDiskBytes)],
              ['Memory', hasEnded && isolation && !isSampled && 'not measured: its programs ended before the first sample'],
              ['Isolation', isolation && `${isolation.level}, network ${isolation.network}`],
            ]}
          />
        </section>
      </div>
      <ResourceList reader={reader} hasEnded={hasEnded} />
      {conditions.length > 0 && (
        <section class="panel" aria-labelledby="conditions-title">
          <h2 id="conditions-title">Conditions</h2>
          <Conditions object={facts.object} />
        </section>
      )}
    </article>
  )
}

const RunLink = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => (
  <a href={pathTo(['runs', namespace, name])}>{name}</a>
)

function Waits({ row: { queuePosition, pool } }: { readonly row: RunRow }) {
  return (
    <p>
      {queuePosition !== undefined && <>About position {formatNumber(queuePosition)} in the queue. </>}
      <a href={pathTo(['queue'], { filter: `pool:${pool}` })}>The queue of pool {pool}</a>
    </p>
  )
}

function Outputs({ outputs }: { readonly outputs: Readonly<Record<string, unknown>> }) {
  return (
    <ul class="plain outputs">
      {Object.entries(outputs).map(([name, value]) => (
        <li key={name}>
          <code>
            {name} = {typeof value === 'string' ? value : JSON.stringify(value)}
          </code>
        </li>
      ))}
    </ul>
  )
}
