import { Actions } from '../../parts/actions.tsx'
import { PlanChanges, Progress } from '../../parts/badge.tsx'
import { formatNumber, shortDigest } from '../../parts/format.ts'
import { StoredPlanText } from '../../parts/plan-text.tsx'
import { Age, Until } from '../../parts/time.tsx'
import { pathTo } from '../../router.ts'
import { Conditions, conditionsOf, stackSentences } from '../conditions.tsx'
import { Facts } from '../facts.tsx'
import { nextRunReason } from '../next-run.ts'
import { RunList } from '../run-list.tsx'
import type { SectionProps } from './section-props.ts'

export function OverviewSection({ namespace, name, row, object, runs, onDestroy }: SectionProps) {
  const { metadata } = object
  // Of the object, not of the row: the digest and the generation of an approval must be of the same moment.
  const plan = row.plan && object.status?.plan
  const isConfirmation = conditionsOf(object).some(({ type, reason }) => type === 'AwaitingApproval' && reason === 'ConfirmationRequired')
  const { handledRequest, lastRun } = object.status ?? {}
  const why = nextRunReason(object, row.activeRun)
  return (
    <>
      {plan && (
        <section class="panel" aria-labelledby="plan-title">
          <h2 id="plan-title">Plan that awaits {isConfirmation ? 'the confirmation of the destruction' : 'approval'}</h2>
          <p>
            <PlanChanges plan={plan} /> of <a href={pathTo(['runs', namespace, plan.runName])}>{plan.runName}</a>, digest{' '}
            <code>{shortDigest(plan.digest)}</code>
          </p>
          <StoredPlanText namespace={namespace} runName={plan.runName} />
        </section>
      )}
      <div class="columns">
        <section class="panel" aria-labelledby="facts-title">
          <h2 id="facts-title">Stack</h2>
          <Facts
            facts={[
              ['Engine', row.engine],
              ['Tenant', row.tenant],
              ['Pool', row.pool],
              ['Resources', row.resources === undefined ? undefined : formatNumber(row.resources)],
              ['Active Run', row.activeRun && <a href={pathTo(['runs', namespace, row.activeRun])}>{row.activeRun}</a>],
              ['Progress', row.progress && <Progress {...row.progress} />],
              [
                'Last Run ended',
                row.finishedMs && (
                  <>
                    <Age ms={row.finishedMs} /> ago
                  </>
                ),
              ],
              [
                'Next Run',
                why && (
                  <>
                    {row.nextRunMs && <Until ms={row.nextRunMs} />} {why}
                  </>
                ),
              ],
              [
                'Labels',
                Object.entries(row.labels)
                  .map(([key, value]) => `${key}=${value}`)
                  .join(', '),
              ],
              [
                'Created',
                <>
                  <Age ms={row.createdMs} /> ago
                </>,
              ],
            ]}
          />
        </section>
        <section class="panel" aria-labelledby="actions-title">
          <h2 id="actions-title">Actions</h2>
          <Actions
            target={{ kind: 'stacks', namespace, name }}
            version={metadata?.resourceVersion ?? ''}
            onOpen={{ destroy: onDestroy }}
            handled={handledRequest !== undefined && lastRun ? { request: handledRequest, runName: lastRun.name } : undefined}
            shown={{
              ...(plan && { digest: plan.digest, planRun: plan.runName }),
              ...(metadata && { uid: metadata.uid, generation: metadata.generation }),
            }}
          />
        </section>
      </div>
      <section class="panel" aria-labelledby="conditions-title">
        <h2 id="conditions-title">Conditions</h2>
        <Conditions object={object} sentences={stackSentences} />
      </section>
      <section class="panel" aria-labelledby="runs-title">
        <h2 id="runs-title">Runs</h2>
        <RunList runs={runs} empty="No Run of this Stack is kept." />
      </section>
    </>
  )
}
