import type { RunRow } from '../../protocol/index.ts'
import { Badge, PlanChanges } from '../parts/badge.tsx'
import { formatWords } from '../parts/format.ts'
import { Age, Duration, Nothing } from '../parts/time.tsx'
import { pathTo } from '../router.ts'

/** A short list of Runs, the newest first. A row leads to its Run, and the name of a Stack to the Stack. */
export function RunList({
  runs,
  empty,
  withStack = false,
}: {
  readonly runs: readonly RunRow[]
  readonly empty: string
  /** Of Runs of several Stacks. */
  readonly withStack?: boolean
}) {
  if (runs.length === 0) return <p class="hint">{empty}</p>
  return (
    <table class={`run-list ${withStack ? 'with-stack' : ''}`}>
      <thead>
        <tr>
          <th scope="col">Phase</th>
          {withStack && <th scope="col">Stack</th>}
          <th scope="col">Run</th>
          {!withStack && (
            <th scope="col" class="what">
              Type and trigger
            </th>
          )}
          <th scope="col" class="plan-cell">
            Plan
          </th>
          <th scope="col" class="number duration">
            Duration
          </th>
          <th scope="col" class="number" title="Since the Run has ended, or else started, or else was requested">
            Updated
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map(run => (
          <RunOfList key={run.key} run={run} withStack={withStack} />
        ))}
      </tbody>
    </table>
  )
}

function RunOfList({ run, withStack }: { readonly run: RunRow; readonly withStack: boolean }) {
  const { key, namespace, name, stack, epoch, type, trigger, phase, plan, startedMs, finishedMs, createdMs } = run
  return (
    <tr>
      <td>
        <Badge value={phase} />
      </td>
      {withStack && (
        <td>
          <a class="object" href={pathTo(['stacks', namespace, stack])} title={`${namespace}/${stack}`}>
            <span class="namespace">{namespace}/</span>
            {stack}
          </a>
        </td>
      )}
      <td class="run">
        <a class="object row-link" href={pathTo(['runs', namespace, name])} title={key}>
          {withStack ? `${type} #${epoch}` : name}
        </a>
      </td>
      {!withStack && (
        <td class="dim clip what">
          {type}, {formatWords(trigger)}
        </td>
      )}
      <td class="plan-cell">{plan ? <PlanChanges plan={plan} /> : <Nothing />}</td>
      <td class="number dim duration">
        <Duration fromMs={startedMs} toMs={finishedMs} />
      </td>
      <td class="number dim">
        <Age ms={finishedMs ?? startedMs ?? createdMs} />
      </td>
    </tr>
  )
}
