import { useEffect, useState } from 'preact/hooks'
import { type Action, phaseTones, stateTones } from '../../protocol/index.ts'
import { Empty } from '../parts/empty.tsx'
import { State, spaced } from '../parts/state.tsx'
import { Age } from '../parts/time.tsx'
import { request } from '../request.ts'
import { pageUrl } from '../router.ts'
import { useView } from '../stream/use-view.ts'
import { Plan } from '../table/columns.tsx'
import { Actions } from './actions.tsx'

type Condition = {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}
type Stored = {
  readonly metadata?: { readonly resourceVersion?: string }
  readonly status?: { readonly conditions?: readonly Condition[] }
}
type Props = { readonly kind: 'stacks' | 'runs'; readonly namespace: string; readonly name: string }

/** One Stack or Run: its state, its conditions, and what can be done with it. */
export function ObjectPage({ kind, namespace, name }: Props) {
  const view = useView({ kind: kind === 'stacks' ? 'stack' : 'run', namespace, name })
  const { facts, error } = view
  const object = facts?.object as Stored | undefined
  const version = object?.metadata?.resourceVersion
  const [actions, setActions] = useState<readonly Action[]>()
  const [failure, setFailure] = useState('')
  useEffect(() => {
    let isCurrent = true
    request<readonly Action[]>('GET', `actions/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`).then(
      list => {
        if (!isCurrent) return
        setActions(list)
        setFailure('')
      },
      (problem: Error) => isCurrent && setFailure(problem.message),
    )
    return () => {
      isCurrent = false
    }
  }, [kind, namespace, name, version])
  const row = facts?.row
  if (facts?.missing !== undefined || error?.code === 'NotFound')
    return (
      <Empty title={`${kind === 'stacks' ? 'The Stack' : 'The Run'} ${namespace}/${name} does not exist`}>
        <p>{facts?.missing ?? error?.message}</p>
        <a href={pageUrl([kind])}>Open the list</a>
      </Empty>
    )
  const state =
    row &&
    ('state' in row ? (
      <State tone={stateTones[row.state]} text={spaced(row.state)} />
    ) : (
      <State tone={phaseTones[row.phase]} text={spaced(row.phase)} />
    ))
  const plan = row?.plan
  return (
    <div class="page object">
      <p class="breadcrumb">
        <a href={pageUrl([kind])}>{kind === 'stacks' ? 'Stacks' : 'Runs'}</a> /{' '}
        <a href={pageUrl([kind], { filter: `namespace:${namespace}` })}>{namespace}</a>
      </p>
      <div class="page-head">
        <h1>{name}</h1>
        {state}
        {plan && <Plan {...plan} />}
      </div>
      {error && (
        <p class="error" role="alert">
          {error.message}
        </p>
      )}
      {row?.message && <p class="message">{row.message}</p>}
      <section aria-labelledby="actions">
        <h2 id="actions">Actions</h2>
        {failure !== '' && (
          <p class="error" role="alert">
            {failure}
          </p>
        )}
        {actions && (
          <Actions
            actions={actions}
            namespace={namespace}
            name={name}
            digest={plan && 'digest' in plan ? plan.digest : undefined}
            planRun={plan && 'runName' in plan ? plan.runName : undefined}
            resourceVersion={version}
          />
        )}
      </section>
      <section aria-labelledby="conditions">
        <h2 id="conditions">Conditions</h2>
        <ul class="conditions">
          {(object?.status?.conditions ?? []).map(({ type, status, reason, message, lastTransitionTime }) => (
            <li key={type}>
              <strong>{spaced(type)}</strong>
              <span>{status === 'True' ? 'Yes' : status === 'False' ? 'No' : 'Unknown'}</span>
              <span>{message || spaced(reason ?? '')}</span>
              <Age ms={lastTransitionTime === undefined ? undefined : Date.parse(lastTransitionTime)} />
            </li>
          ))}
        </ul>
      </section>
    </div>
  )
}
