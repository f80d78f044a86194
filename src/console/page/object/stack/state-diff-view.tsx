import { useState } from 'preact/hooks'
import type { AttributeChange, StateDiff } from '../../../protocol/index.ts'
import { formatCount, formatNumber } from '../../parts/format.ts'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { Value } from './value.tsx'

const signs = { added: ['+', 'good'], removed: ['−', 'bad'], changed: ['~', 'attention'] } as const

/** What differs between two versions of a state: names, and values when the user asks for them. */
export function StateDiffView({
  stack,
  from,
  to,
}: {
  readonly stack: { readonly namespace: string; readonly name: string }
  /** Undefined: the version before `to`. */
  readonly from: number | undefined
  readonly to: number
}) {
  const [withValues, setWithValues] = useState(false)
  const query = `diff?to=${to}${from === undefined ? '' : `&from=${from}`}${withValues ? '&values=1' : ''}`
  const part = usePart<StateDiff>(stackPath(stack, query))
  return (
    <PartView part={part} what="The difference">
      {diff => (
        <>
          <p class="dim">
            {diff.from === undefined ? 'There is no version before it.' : `Version ${diff.from} to version ${diff.to}.`}{' '}
            {formatCount(diff.unchanged, 'resource')} unchanged.
          </p>
          {diff.resources.length + diff.outputs.length === 0 && <p class="hint">They have the same resources and outputs.</p>}
          <ul class="plain rows diff">
            {diff.resources.map(({ address, change, attributes, moreAttributes }) => {
              const [sign, tone] = signs[change]
              return (
                <li key={address}>
                  <span class={`sign ${tone}`}>
                    <span aria-hidden="true">{sign}</span>
                    <span class="hidden">{change}</span>
                  </span>
                  <span>
                    <code>{visibleText(address)}</code>
                    <Attributes changes={attributes} />
                    {moreAttributes > 0 && <p class="hint">{formatCount(moreAttributes, 'more attribute')}.</p>}
                  </span>
                </li>
              )
            })}
            {diff.outputs.length > 0 && (
              <li>
                <span class="sign attention" aria-hidden="true">
                  ~
                </span>
                <span>
                  Outputs
                  <Attributes changes={diff.outputs} />
                </span>
              </li>
            )}
          </ul>
          {diff.moreResources > 0 && <p class="hint">{formatNumber(diff.moreResources)} more resources differ.</p>}
          {(withValues || diff.resources.some(({ attributes }) => attributes.length > 0) || diff.outputs.length > 0) && (
            <label class="check">
              <input type="checkbox" checked={withValues} onChange={({ currentTarget }) => setWithValues(currentTarget.checked)} />
              <span>Show values, without those that are marked as sensitive</span>
            </label>
          )}
        </>
      )}
    </PartView>
  )
}

function Attributes({ changes }: { readonly changes: readonly AttributeChange[] }) {
  if (changes.length === 0) return null
  return (
    <ul class="plain attributes">
      {changes.map(({ path, from, to }) => (
        <li key={path}>
          <code>{visibleText(path)}</code>{' '}
          {isHidden(from) && isHidden(to) ? (
            <span class="dim">{from === undefined ? 'is new' : to === undefined ? 'is gone' : 'changed'}</span>
          ) : (
            <>
              <Value shown={from} /> → <Value shown={to} />
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

const isHidden = (value: AttributeChange['from']) => value === undefined || 'hidden' in value
