import { Badge, PlanChanges } from '../../parts/badge.tsx'
import { Command } from '../../parts/command.tsx'
import { StoredPlanText } from '../../parts/plan-text.tsx'
import { Age, Until } from '../../parts/time.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { pathTo } from '../../router.ts'
import { conditionsOf } from '../conditions.tsx'
import { Facts } from '../facts.tsx'
import { RunList } from '../run-list.tsx'
import type { SectionProps } from './section-props.ts'

const settings: Readonly<Record<string, string>> = {
  Correct: 'Correct: what differs is applied again',
  Report: 'Report: what differs is reported, and not changed',
  Off: 'Off: resources are not compared at intervals',
}

export function DriftSection({ namespace, name, row, object, runs }: SectionProps) {
  const drifted = conditionsOf(object).find(({ type }) => type === 'Drifted')
  const { drift = 'Correct', interval } = object.spec ?? {}
  const checkedAt = object.status?.checkedAt
  // Its message names the Run that has found the drift.
  const found = drifted?.status === 'True' ? runs.find(run => drifted.message?.includes(`${run.name} `)) : undefined
  const checks = runs.filter(({ trigger }) => trigger === 'DriftCheck')
  const state = { True: ['Drifted', 'attention'], False: ['No drift', 'good'], Unknown: ['Not known', 'idle'] } as const
  const [label, tone] = state[(drifted?.status ?? 'Unknown') as keyof typeof state] ?? state.Unknown
  return (
    <>
      <section class="panel" aria-labelledby="drift-title">
        <h2 id="drift-title">Drift</h2>
        <p>
          <Badge value={label} tone={tone} />{' '}
          {visibleText(drifted?.message ?? 'The resources have not been compared since they were applied.')}
        </p>
        <Facts
          facts={[
            ['What happens', settings[drift]],
            ['Interval', drift === 'Off' ? undefined : (interval ?? 'never: spec.interval is not set')],
            [
              'Applied or compared',
              checkedAt && (
                <>
                  <Age ms={Date.parse(checkedAt)} /> ago
                </>
              ),
            ],
            ['Next Run', row.nextRunMs && <Until ms={row.nextRunMs} />],
          ]}
        />
        <p class="hint">A plan compares now, and a Run applies what the source says:</p>
        <Command text={`oarlock plan ${name} -n ${namespace}`} />
        <Command text={`oarlock run ${name} -n ${namespace}`} />
      </section>
      {found && (
        <section class="panel" aria-labelledby="differs-title">
          <h2 id="differs-title">What differs</h2>
          <p>
            {found.plan && <PlanChanges plan={found.plan} />} to be as the source says, found by{' '}
            <a href={pathTo(['runs', namespace, found.name])}>{found.name}</a>
          </p>
          <StoredPlanText namespace={namespace} runName={found.name} />
        </section>
      )}
      <section class="panel" aria-labelledby="checks-title">
        <h2 id="checks-title">Drift checks</h2>
        <RunList runs={checks} empty="No drift check of this Stack is kept." />
      </section>
    </>
  )
}
