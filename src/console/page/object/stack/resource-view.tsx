import { useState } from 'preact/hooks'
import type { ResourceAttribute, ResourceDetails, ResourceObject } from '../../../protocol/index.ts'
import { Command } from '../../parts/command.tsx'
import { formatCount } from '../../parts/format.ts'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { InventoryHint } from './inventory-hint.tsx'
import { LongText } from './long-text.tsx'
import { matchesWords, wordsOf } from './words.ts'

type StackName = { readonly namespace: string; readonly name: string }

/** What a version of the state has of one resource, without what is sensitive. */
export function ResourceView({
  stack,
  version,
  address,
}: {
  readonly stack: StackName
  readonly version: number | undefined
  readonly address: string
}) {
  const query = new URLSearchParams({ address, ...(version !== undefined && { version: String(version) }) })
  const part = usePart<ResourceDetails>(stackPath(stack, `resource?${query}`))
  return (
    <div class="resource">
      <PartView part={part} what="The resource">
        {details => <Details stack={stack} details={details} />}
      </PartView>
    </div>
  )
}

function Details({ stack, details }: { readonly stack: StackName; readonly details: ResourceDetails }) {
  const { address, version, format, objects, moreObjects, unmarkedBy } = details
  const isWhole = moreObjects === 0 && objects.every(object => object.more === 0 && valuesOf(object).every(({ isCut }) => !isCut))
  return (
    <>
      {objects.map((object, index) => (
        <ObjectDetails key={index} address={address} format={format} object={object} />
      ))}
      {moreObjects > 0 && <p class="hint">{formatCount(moreObjects, 'more object')} with this address.</p>}
      {unmarkedBy !== undefined && (
        <p class="hint">
          No value is shown: version {unmarkedBy || 'that is not known'} of the engine, which has written this state, does not record what
          providers mark as sensitive. Terraform and OpenTofu do from 1.8.0 on.
        </p>
      )}
      {(!isWhole || unmarkedBy !== undefined) && (
        <>
          <p class="hint">The state itself has all of it, also secrets:</p>
          <Command text={`oarlock state pull ${stack.name} -n ${stack.namespace} --version ${version}`} />
        </>
      )}
    </>
  )
}

function ObjectDetails({
  address,
  format,
  object,
}: {
  readonly address: string
  readonly format: ResourceDetails['format']
  readonly object: ResourceObject
}) {
  const { facts, attributes, inputs, more } = object
  const [filter, setFilter] = useState('')
  const words = wordsOf(filter)
  const matching = (values: readonly ResourceAttribute[]) =>
    values.filter(({ name, text = '' }) => matchesWords(`${visibleText(name)} ${text}`, words))
  const noun = format === 'pulumi' ? 'output' : 'attribute'
  return (
    <>
      <Values values={facts} />
      {format === 'inventory' ? (
        <InventoryHint facts={facts} />
      ) : (
        <>
          <p class="dim">{attributes.length === 0 ? `The state has no ${noun}s of it.` : `${formatCount(attributes.length, noun)}:`}</p>
          {attributes.length + inputs.length > 10 && (
            <input
              type="text"
              aria-label={`Filter the ${noun}s of ${visibleText(address)}`}
              placeholder="Filter by name or value"
              value={filter}
              onInput={event => setFilter(event.currentTarget.value)}
            />
          )}
          <Values values={matching(attributes)} />
          {inputs.length > 0 && <p class="dim">{formatCount(inputs.length, 'input')} that no output equals:</p>}
          <Values values={matching(inputs)} />
          {filter !== '' && matching([...attributes, ...inputs]).length === 0 && <p class="hint">No {noun} matches the filter.</p>}
          {more > 0 && <p class="hint">{formatCount(more, 'more attribute')} not shown.</p>}
        </>
      )}
    </>
  )
}

const valuesOf = ({ facts, attributes, inputs }: ResourceObject) => [...facts, ...attributes, ...inputs]

function Values({ values }: { readonly values: readonly ResourceAttribute[] }) {
  if (values.length === 0) return null
  return (
    <ul class="plain rows values">
      {values.map(({ name, text, isCut }) => (
        <li key={name}>
          <code>{visibleText(name)}</code>
          {text === undefined ? (
            <span>
              <span class="tag">sensitive</span>
            </span>
          ) : (
            <span>
              <LongText name={visibleText(name)} text={text} />
              {isCut && <p class="hint">The console has only the beginning of this value.</p>}
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}
