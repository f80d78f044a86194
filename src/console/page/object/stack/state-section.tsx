import { useEffect, useRef, useState } from 'preact/hooks'
import type { Action, StateVersion, StateVersions } from '../../../protocol/index.ts'
import { ActionForm } from '../../parts/actions.tsx'
import { Command } from '../../parts/command.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { formatBytes } from '../../parts/format.ts'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { Age } from '../../parts/time.tsx'
import { navigate, pathTo, route } from '../../router.ts'
import type { SectionProps } from './section-props.ts'
import { StateDiffView } from './state-diff-view.tsx'

export function StateSection(props: SectionProps) {
  const { namespace, name, version } = props
  const part = usePart<StateVersions>(stackPath(props, 'versions'), version)
  const [rollback, setRollback] = useState<StateVersion>()
  /** How often a comparison was chosen in the list: each time the page moves to it. */
  const [chosen, setChosen] = useState(0)
  const { query } = route.value
  const to = numberOf(query.get('to'))
  const compare = (from: number | undefined, next: number) =>
    navigate(pathTo(['stacks', namespace, name, 'state'], { from: from === undefined ? undefined : String(from), to: String(next) }))
  return (
    <section class="panel" aria-labelledby="state-title">
      <h2 id="state-title">Versions of the state</h2>
      <PartView part={part} what="The versions of the state">
        {({ versions, lock, whyNoRollback }) => (
          <>
            {lock && (
              <p>
                The state is locked for <Age ms={lock.sinceMs} /> by {lock.holder}.
              </p>
            )}
            {versions.length === 0 && <p class="hint">There is no state yet: a Run that applies something stores one.</p>}
            <ul class="plain rows versions">
              {versions.map(each => {
                const why = each.whyNoRollback ?? whyNoRollback
                const isRejected = each.orphanReason !== undefined
                return (
                  <li key={each.version}>
                    <strong class="number">{each.version}</strong>
                    <span>
                      {each.author.replace(/^user:/, 'user ')}{' '}
                      <span class="dim">
                        {each.bytes === 0 ? 'deleted' : formatBytes(each.bytes)}, <Age ms={each.createdMs} /> ago
                      </span>
                    </span>
                    <span class="tags">
                      {each.isCurrent && <span class="tag">current</span>}
                      {each.kind === 'inventory' && <span class="tag">inventory</span>}
                      {isRejected && <span class="tag">rejected: {each.orphanReason}</span>}
                    </span>
                    <span class="buttons">
                      {!isRejected && (
                        <button
                          type="button"
                          class="small"
                          aria-label={`Changes of version ${each.version}`}
                          aria-pressed={to === each.version}
                          onClick={() => {
                            compare(undefined, each.version)
                            setChosen(chosen + 1)
                          }}
                        >
                          Changes
                        </button>
                      )}
                      {!each.isCurrent && (
                        <button
                          type="button"
                          class="small danger"
                          aria-label={`Roll back to version ${each.version}`}
                          aria-disabled={why !== undefined}
                          title={why}
                          onClick={() => why === undefined && setRollback(each)}
                        >
                          Roll back
                        </button>
                      )}
                    </span>
                  </li>
                )
              })}
            </ul>
            {whyNoRollback !== undefined && <p class="hint">No rollback: {whyNoRollback}.</p>}
            {to !== undefined && (
              <Comparison stack={props} versions={versions} from={numberOf(query.get('from'))} to={to} chosen={chosen} onChange={compare} />
            )}
            {rollback && (
              <RollbackDialog
                stack={props}
                version={rollback.version}
                current={versions.find(({ isCurrent, kind }) => isCurrent && kind === rollback.kind)?.version ?? 0}
                onClose={() => {
                  setRollback(undefined)
                  part.reload()
                }}
              />
            )}
          </>
        )}
      </PartView>
      <Command text={`oarlock state versions ${name} -n ${namespace}`} />
    </section>
  )
}

type Name = { readonly namespace: string; readonly name: string }

function Comparison({
  stack,
  versions,
  from,
  to,
  chosen,
  onChange,
}: {
  readonly stack: Name
  readonly versions: readonly StateVersion[]
  readonly from: number | undefined
  readonly to: number
  /** The page moves to the comparison whenever this changes; 0: it was not chosen here, but is in the address. */
  readonly chosen: number
  readonly onChange: (from: number | undefined, to: number) => void
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (chosen === 0) return
    heading.current?.scrollIntoView({ block: 'start' })
    heading.current?.focus({ preventScroll: true })
  }, [chosen])
  const comparable = versions.filter(({ orphanReason }) => orphanReason === undefined)
  const select = (label: string, value: number | undefined, choose: (version: number | undefined) => void, empty?: string) => (
    <label>
      <span>{label}</span>
      <select
        value={value ?? ''}
        onChange={({ currentTarget }) => choose(currentTarget.value === '' ? undefined : Number(currentTarget.value))}
      >
        {empty && <option value="">{empty}</option>}
        {comparable.map(({ version }) => (
          <option key={version} value={version}>
            version {version}
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <section class="comparison" aria-labelledby="comparison-title">
      <h2 id="comparison-title" ref={heading} tabIndex={-1}>
        Difference
      </h2>
      <div class="selects">
        {select('From', from, version => onChange(version, to), 'the one before')}
        {select('to', to, version => version !== undefined && onChange(from, version))}
      </div>
      <StateDiffView stack={stack} from={from} to={to} />
    </section>
  )
}

/** Shows what a rollback changes in the state before it is confirmed. */
function RollbackDialog({
  stack,
  version,
  current,
  onClose,
}: {
  readonly stack: Name
  readonly version: number
  readonly current: number
  readonly onClose: () => void
}) {
  const { namespace, name } = stack
  const action: Action = {
    ...{ name: 'rollback', label: 'Roll back', enabled: true },
    command: `oarlock state rollback ${name} --to ${version} -n ${namespace}`,
  }
  // What was current when the dialog was opened.
  const [shown] = useState({ version, currentVersion: current })
  return (
    <Dialog isWide title={`Roll back the state of ${namespace}/${name} to version ${version}`} onClose={onClose}>
      <p>
        Version {version} is stored again as the newest version, and the current state is kept as version {shown.currentVersion}. Resources
        do not change now: the next Run plans from the state of version {version}.
      </p>
      <StateDiffView stack={stack} from={shown.currentVersion} to={version} />
      <ActionForm action={action} target={{ kind: 'stacks', namespace, name }} shown={shown} onClose={onClose} />
    </Dialog>
  )
}

const numberOf = (text: string | null): number | undefined => (text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined)
