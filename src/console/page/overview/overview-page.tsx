import { type AttentionGroup, type OverviewFacts, phaseTones, type StackState, stateTones, type Tone } from '../../protocol/index.ts'
import { Empty } from '../parts/empty.tsx'
import { formatCount, plural } from '../parts/format.ts'
import { State, spaced } from '../parts/state.tsx'
import { Age } from '../parts/time.tsx'
import { pageUrl } from '../router.ts'
import { useView } from '../stream/use-view.ts'
import { Plan } from '../table/columns.tsx'

const attentionTones: Readonly<Record<AttentionGroup['kind'], Tone>> = {
  Failed: 'bad',
  AwaitingApproval: 'attention',
  Stuck: 'bad',
  Drifted: 'attention',
}

/** What needs a user, then what there is. */
export function OverviewPage() {
  const { facts, error } = useView({ kind: 'overview' })
  return (
    <div class="page overview">
      <div class="page-head">
        <h1>Overview</h1>
      </div>
      {error && (
        <p class="error" role="alert">
          {error.message}
        </p>
      )}
      {facts ? <Facts facts={facts} /> : <div class="loading" aria-busy="true" />}
    </div>
  )
}

function Facts({ facts }: { readonly facts: OverviewFacts }) {
  const { stacks, states, attention, queue, workers, recent } = facts
  if (stacks === 0)
    return (
      <Empty title="There are no Stacks">
        <p>
          Create one with <code>kubectl apply -f stack.yaml</code>; it appears here.
        </p>
      </Empty>
    )
  return (
    <>
      <dl class="figures">
        <div>
          <dt>Stacks</dt>
          <dd>
            <a href={pageUrl(['stacks'])}>{formatCount(stacks)}</a>
          </dd>
        </div>
        <div>
          <dt>Queue</dt>
          <dd>
            <a href={pageUrl(['queue'])}>{formatCount(queue.length)}</a>
            {queue.oldestMs !== undefined && (
              <small>
                oldest <Age ms={queue.oldestMs} />
              </small>
            )}
          </dd>
        </div>
        <div>
          <dt>Workers</dt>
          <dd>
            <a href={pageUrl(['workers'])}>{formatCount(workers.total)}</a>
            <small>
              {formatCount(workers.busy)} busy{workers.draining > 0 && `, ${formatCount(workers.draining)} draining`}
            </small>
          </dd>
        </div>
      </dl>
      <section aria-labelledby="attention">
        <h2 id="attention">Needs attention</h2>
        {attention.length === 0 ? (
          <p class="muted">No Stack has failed, waits for an approval, is stuck or has drifted.</p>
        ) : (
          <ul class="attention">
            {attention.map(group => (
              <Group key={`${group.kind} ${group.reason} ${group.filter}`} group={group} />
            ))}
          </ul>
        )}
      </section>
      <section aria-labelledby="states">
        <h2 id="states">Stacks by state</h2>
        <ul class="states">
          {(Object.entries(states) as [StackState, number][]).map(([state, count]) => (
            <li key={state}>
              <a class="chip" href={pageUrl(['stacks'], { filter: `state:${state}` })}>
                <State tone={stateTones[state]} text={spaced(state)} />
                <span class="count">{formatCount(count)}</span>
              </a>
            </li>
          ))}
        </ul>
      </section>
      <section aria-labelledby="recent">
        <h2 id="recent">Recent Runs</h2>
        <ul class="recent">
          {recent.map(run => (
            <li key={run.key}>
              <State tone={phaseTones[run.phase]} text={spaced(run.phase)} />
              <a href={pageUrl(['runs', run.namespace, run.name])}>
                <span class="muted">{run.namespace}/</span>
                {run.name}
              </a>
              <span class="muted">{run.type}</span>
              <Age ms={run.finishedMs ?? run.startedMs ?? run.createdMs} />
            </li>
          ))}
        </ul>
      </section>
    </>
  )
}

function Group({ group: { kind, reason, message, count, sinceMs, stacks, filter } }: { readonly group: AttentionGroup }) {
  return (
    <li>
      <div class="group-head">
        <State tone={attentionTones[kind]} text={spaced(kind)} />
        <a href={pageUrl(['stacks'], { filter })}>{plural(count, 'Stack')}</a>
        {reason !== kind && <span class="muted">{spaced(reason)}</span>}
        <Age ms={sinceMs} />
      </div>
      <p class="message">{message}</p>
      <p class="members">
        {stacks.slice(0, 5).map(({ namespace, name, plan }) => (
          <a key={`${namespace}/${name}`} href={pageUrl(['stacks', namespace, name])}>
            {namespace}/{name} {plan && <Plan {...plan} />}
          </a>
        ))}
        {count > 5 && <a href={pageUrl(['stacks'], { filter })}>and {formatCount(count - Math.min(5, stacks.length))} more</a>}
      </p>
    </li>
  )
}
