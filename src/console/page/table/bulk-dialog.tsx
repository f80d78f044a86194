import { useState } from 'preact/hooks'
import type { BulkRequest, BulkResult, StackRow } from '../../protocol/index.ts'
import { actionEffects } from '../parts/action-effects.ts'
import { Badge, isSuspendedToo, PlanChanges } from '../parts/badge.tsx'
import { Command } from '../parts/command.tsx'
import { CloseFooter, Dialog } from '../parts/dialog.tsx'
import { formatCount, formatNumber } from '../parts/format.ts'
import { visibleText } from '../parts/visible-text.ts'
import { request } from '../request.ts'
import { pathTo } from '../router.ts'
import { type BulkAction, bulkLabels } from './bulk-actions.tsx'

const maxListed = 100
/** What failed needs the user: it is listed before what is done, and further. */
const maxListedFailures = 1_000

type Step =
  | { readonly kind: 'confirm' }
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'done'; readonly results: BulkResult['results'] }

/** Asks before an action on many Stacks, with their number; shows the result of each afterwards. */
export function BulkDialog({
  action,
  rows,
  filter,
  count,
  onClose,
}: {
  readonly action: BulkAction
  readonly rows: readonly StackRow[]
  /** Of an action on everything that matches; undefined: on the rows. */
  readonly filter: string | undefined
  readonly count: number
  readonly onClose: () => void
}) {
  const [step, setStep] = useState<Step>({ kind: 'confirm' })
  const isAll = filter !== undefined
  const expected = isAll ? count : rows.length
  const carryOut = async () => {
    setStep({ kind: 'running' })
    const stacks = rows.map(({ key }) => ({ key }))
    const body: BulkRequest = { action, expected, ...(isAll ? { filter } : { stacks }) }
    try {
      const { results } = await request<BulkResult>('POST', 'bulk', body)
      setStep({ kind: 'done', results })
    } catch (error) {
      setStep({ kind: 'failed', message: (error as Error).message })
    }
  }
  return (
    <Dialog isWide title={`${bulkLabels[action]} ${formatCount(expected, 'Stack')}`} onClose={onClose}>
      {step.kind === 'done' ? (
        <Results action={action} results={step.results} onClose={onClose} />
      ) : (
        <>
          <p>{actionEffects[action]}</p>
          {deletionEffects[action] && <p>{deletionEffects[action]}</p>}
          {isAll ? (
            <p>
              Everything that matches {filter === '' ? 'no filter: the whole fleet' : <code>{filter}</code>},{' '}
              {formatCount(expected, 'Stack')} now. If that number has changed, nothing is done.
            </p>
          ) : (
            <>
              <ul class="plain listed">
                {rows.slice(0, maxListed).map(row => (
                  <li key={row.key}>
                    <StackLink stack={row.key} />
                    <span>
                      {row.plan && <PlanChanges plan={row.plan} />} {isSuspendedToo(row) && <span class="tag">suspended</span>}
                    </span>
                    <Badge value={row.state} />
                  </li>
                ))}
              </ul>
              {rows.length > maxListed && <p>and {formatNumber(rows.length - maxListed)} more</p>}
              <p>The same for the first of them:</p>
              <Command text={commandOf(action, rows[0])} />
            </>
          )}
          <p class="problem" role="alert">
            {step.kind === 'failed' ? step.message : ''}
          </p>
          <footer>
            <button type="button" onClick={onClose}>
              Back
            </button>
            <button type="button" class="primary" disabled={step.kind === 'running' || expected === 0} onClick={() => void carryOut()}>
              {step.kind === 'running' ? 'Working…' : `${bulkLabels[action]} ${formatCount(expected, 'Stack')}`}
            </button>
          </footer>
        </>
      )}
    </Dialog>
  )
}

/** Of the Stacks among them that are being deleted. */
const deletionEffects: Partial<Readonly<Record<BulkAction, string>>> = {
  run: 'A Stack that is being deleted gets no Run here: its page states what a Run does then.',
  suspend: 'The deletion of a Stack waits too; an active Run of it may still destroy resources.',
  resume: 'The deletion of a Stack continues too: its resources are destroyed, after an approval where one is required.',
}

/** What has happened when the server has accepted the action: a Run, or its cancellation, is only requested then. */
const outcomes: Readonly<Record<BulkAction, string>> = {
  run: 'requested',
  cancel: 'requested',
  suspend: 'suspended',
  resume: 'resumed',
}

/** Opens a tab, so that the dialog stays. */
const StackLink = ({ stack }: { readonly stack: string }) => (
  <a class="clip" href={pathTo(['stacks', ...stack.split('/')])} target="_blank" rel="noreferrer" title={stack}>
    {stack}
  </a>
)

function Results({
  action,
  results,
  onClose,
}: {
  readonly action: BulkAction
  readonly results: BulkResult['results']
  readonly onClose: () => void
}) {
  const outcome = outcomes[action]
  const failed = results.filter(({ ok }) => !ok)
  const done = results.filter(({ ok }) => ok)
  return (
    <>
      <p role="status">
        {formatNumber(done.length)} {outcome}, {formatNumber(failed.length)} failed
      </p>
      {failed.length > 0 && (
        <>
          <h3>Failed</h3>
          <ResultList results={failed} outcome="failed" most={maxListedFailures} />
        </>
      )}
      {done.length > 0 && (
        <details open={failed.length === 0}>
          <summary>
            {capitalized(outcome)}: {formatNumber(done.length)}
          </summary>
          <ResultList results={done} outcome={outcome} most={maxListed} />
        </details>
      )}
      <CloseFooter onClose={onClose} />
    </>
  )
}

/** The first `most`, the next as many when the user asks for them, and how many are left. */
function ResultList({
  results,
  outcome,
  most,
}: {
  readonly results: BulkResult['results']
  readonly outcome: string
  readonly most: number
}) {
  const [listed, setListed] = useState(most)
  const left = results.length - listed
  return (
    <>
      <ul class="plain listed results">
        {results.slice(0, listed).map(({ key, ok, message }) => (
          <li key={key}>
            <StackLink stack={key} />
            <span>{visibleText(message)}</span>
            <Badge value={capitalized(outcome)} tone={ok ? 'good' : 'bad'} />
          </li>
        ))}
      </ul>
      {left > 0 && (
        <p>
          {formatNumber(listed)} of {formatNumber(results.length)} are listed.{' '}
          <button type="button" class="small" onClick={() => setListed(listed + most)}>
            Show {formatNumber(Math.min(left, most))} more
          </button>
        </p>
      )}
    </>
  )
}

const capitalized = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

const commandOf = (action: BulkAction, row: StackRow | undefined): string =>
  row === undefined
    ? ''
    : action === 'cancel'
      ? `oarlock cancel run/${row.activeRun ?? 'RUN'} -n ${row.namespace}`
      : `oarlock ${action} ${row.name} -n ${row.namespace}`
