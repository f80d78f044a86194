import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { AttentionGroup, OverviewFacts, StackState } from '../../protocol/index.ts'
import { stateTones } from '../../protocol/index.ts'
import { RunList } from '../object/run-list.tsx'
import { Badge, PlanChanges } from '../parts/badge.tsx'
import { Command } from '../parts/command.tsx'
import { formatCount, formatNumber, formatWords } from '../parts/format.ts'
import { lazy } from '../parts/lazy.tsx'
import { Notice } from '../parts/notice.tsx'
import { Age, Nothing } from '../parts/time.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { pathTo } from '../router.ts'
import { useView } from '../stream/use-view.ts'

const Charts = lazy(async () => (await import('./charts.tsx')).Charts)

/** So many groups leave space for the rest of the page. */
const shownGroups = 6
const namedStacks = 4

/** What needs a user first, then how the fleet is. */
export function OverviewPage() {
  const [isAll, setAll] = useState(false)
  const view = useView<OverviewFacts>({ kind: 'overview' })
  const facts = view.facts.value
  const error = view.error.value
  if (error)
    return (
      <Notice isError title="The overview cannot be read now">
        <p>{error.message}</p>
      </Notice>
    )
  if (!facts) return <div class="loading" aria-busy="true" />
  const { attention, needAttention, queue, workers, recent, stacks, states, isWhole } = facts
  return (
    <div class="overview">
      <h1 class="hidden">Overview</h1>
      <section class="panel" aria-labelledby="attention-title">
        <h2 id="attention-title">Needs attention{isWhole.stacks ? '' : inPermitted}</h2>
        {stacks === 0 && !isWhole.stacks ? (
          <p class="hint">There is no Stack in the namespaces that you may see.</p>
        ) : stacks === 0 ? (
          <>
            <p>There is no Stack yet. Apply one:</p>
            <Command text="oarlock apply -f stack.yaml" />
          </>
        ) : attention.length === 0 ? (
          <p class="hint">Nothing: no Stack{isWhole.stacks ? '' : inPermitted} is failed, drifted, stuck or waits for approval.</p>
        ) : (
          <ul class="plain attention">
            {(isAll ? attention : attention.slice(0, shownGroups)).map(group => (
              <Attention key={group.filter} group={group} />
            ))}
            {isAll && needAttention.groups > attention.length && (
              <li>
                <a href={pathTo(['stacks'], { filter: '-attention:none' })}>
                  And {formatCount(needAttention.groups - attention.length, 'more group')}: all Stacks that need attention
                </a>
              </li>
            )}
            {!isAll && attention.length > shownGroups && (
              <li>
                <button type="button" class="quiet" onClick={() => setAll(true)}>
                  Show {formatCount(attention.length - shownGroups, 'more group')}
                </button>
              </li>
            )}
          </ul>
        )}
      </section>
      {stacks > 0 && <States states={states} total={stacks} />}
      <section class="tiles" aria-label="Counts">
        <Tile
          label="Stacks"
          value={stacks}
          href={pathTo(['stacks'])}
          note={`${formatNumber(states.Ready ?? 0)} ready${isWhole.stacks ? '' : inPermitted}`}
        />
        <Tile
          label="Need attention"
          value={needAttention.stacks}
          href={pathTo(['stacks'], { filter: '-attention:none' })}
          note={`${formatCount(needAttention.groups, 'group')}${isWhole.stacks ? '' : inPermitted}`}
        />
        <Tile
          label="Queue"
          value={queue.length}
          href={pathTo(['queue'])}
          note={
            <>
              {queue.oldestMs === undefined ? (
                'no Run waits'
              ) : (
                <>
                  oldest <Age ms={queue.oldestMs} />
                </>
              )}
              {!isWhole.runs && inPermitted}
            </>
          }
        />
        <Tile
          label="Workers"
          value={workers?.total}
          href={pathTo(['workers'])}
          note={workers ? busyOf(workers) : 'you may not list Workers'}
        />
      </section>
      <div class="columns">
        <section class="panel" aria-labelledby="recent-title">
          <h2 id="recent-title">
            <a href={pathTo(['runs'])}>Recent Runs</a>
          </h2>
          <RunList runs={recent} empty={`No Run is kept${isWhole.runs ? '' : inPermitted}.`} withStack />
        </section>
        <section class="panel" aria-labelledby="history-title">
          <h2 id="history-title">Last hour</h2>
          <Charts minutes={60} />
        </section>
      </div>
    </div>
  )
}

const inPermitted = ' in the namespaces that you may see'

const busyOf = ({ busy, draining }: NonNullable<OverviewFacts['workers']>) =>
  `${formatNumber(busy)} busy${draining > 0 ? `, ${formatNumber(draining)} draining` : ''}`

function Tile({
  label,
  value,
  note,
  href,
}: {
  readonly label: string
  /** Undefined: the user may not see it. */
  readonly value: number | undefined
  readonly note: ComponentChildren
  readonly href: string
}) {
  return (
    <a class="tile" href={href}>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{value === undefined ? <Nothing /> : formatNumber(value)}</span>
      <span class="tile-note">{note}</span>
    </a>
  )
}

const stateNames = Object.keys(stateTones) as StackState[]

/** A bar of all Stacks, divided by state, and the counts as links. */
function States({ states, total }: { readonly states: OverviewFacts['states']; readonly total: number }) {
  const present = stateNames.filter(name => (states[name] ?? 0) > 0)
  return (
    <section class="states" aria-label="Stacks by state">
      <div class="bar" aria-hidden="true">
        {present.map(name => (
          <span key={name} class={stateTones[name]} style={{ flexGrow: String((states[name] ?? 0) / total) }} />
        ))}
      </div>
      <ul class="plain">
        {present.map(name => (
          <li key={name}>
            <a class="chip" href={pathTo(['stacks'], { filter: `state:${name.toLowerCase()}` })}>
              <span class={`dot ${stateTones[name]}`} aria-hidden="true" />
              {formatWords(name)} <span class="count">{formatNumber(states[name] ?? 0)}</span>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

const attentionTones = { Failed: 'bad', AwaitingApproval: 'attention', Stuck: 'attention', Drifted: 'attention' } as const

function Attention({ group: { kind, reason, message, count, sinceMs, stacks, filter } }: { readonly group: AttentionGroup }) {
  return (
    <li>
      <Badge value={kind} tone={attentionTones[kind]} />
      <div class="attention-text">
        <p>
          <a href={pathTo(['stacks'], { filter })}>
            <strong>{formatCount(count, 'Stack')}</strong>
          </a>{' '}
          {formatWords(reason)}
          <span class="dim">
            {sinceMs !== undefined && (
              <>
                {' '}
                for <Age ms={sinceMs} />
              </>
            )}
          </span>
        </p>
        <p class="dim message">{visibleText(message)}</p>
        <p class="names">
          {stacks.slice(0, namedStacks).map(({ namespace, name, plan }) => (
            <span key={`${namespace}/${name}`} class="name">
              <a href={pathTo(['stacks', namespace, name])}>
                {namespace}/{name}
              </a>
              {plan && <PlanChanges plan={plan} />}
            </span>
          ))}
          {count > namedStacks && <a href={pathTo(['stacks'], { filter })}>and {formatNumber(count - namedStacks)} more</a>}
        </p>
      </div>
    </li>
  )
}
