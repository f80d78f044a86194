import { useState } from 'preact/hooks'
import type { StackResources } from '../../../protocol/index.ts'
import { Command } from '../../parts/command.tsx'
import { formatCount, formatNumber } from '../../parts/format.ts'
import { Notice } from '../../parts/notice.tsx'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { Age } from '../../parts/time.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { pathTo, route } from '../../router.ts'
import { ResourceRow } from './resource-row.tsx'
import type { SectionProps } from './section-props.ts'
import { matchesWords, wordsOf } from './words.ts'

/** More rows than these are of no use on a page: the filter finds the others. */
const maxShown = 500

/** Engines that record nothing but outputs and what they have executed. */
const withoutResources = new Set(['command', 'ansible'])

export function ResourcesSection(props: SectionProps) {
  const { namespace, name, row, version } = props
  const part = usePart<StackResources>(stackPath(props, 'resources'), version)
  return (
    <section class="panel" aria-labelledby="resources-title">
      <h2 id="resources-title">Resources</h2>
      <PartView part={part} what="The resources">
        {content => <Resources stack={props} engine={row.engine} content={content} />}
      </PartView>
      <Command text={`oarlock state show ${name} -n ${namespace}`} />
    </section>
  )
}

function Resources({
  stack,
  engine,
  content,
}: {
  readonly stack: { readonly namespace: string; readonly name: string }
  readonly engine: string
  readonly content: StackResources
}) {
  const { format, resources, total, pending, author, createdMs, version } = content
  const [filter, setFilter] = useState('')
  if (format === 'external')
    return <p class="hint">Its state is in the backend that the source configures (spec.state External): Oarlock does not have it.</p>
  if (format === 'none')
    return (
      <p class="hint">
        {withoutResources.has(engine)
          ? `Engine ${engine} does not report resources.`
          : 'There is no state yet: a Run that applies something stores one.'}
      </p>
    )
  if (format === 'unknown') return <p class="hint">The state has a format that is not known: "oarlock state pull" downloads it.</p>
  const words = wordsOf(filter)
  // Several objects with one address are shown together.
  const byAddress = new Map(resources.map(resource => [resource.address, resource]))
  const matching = [...byAddress.values()].filter(({ address, provider }) => matchesWords(`${address} ${provider}`, words))
  const shown = matching.slice(0, maxShown)
  const linked = route.value.query.get('resource')
  const isLinkedLeftOut = linked !== null && filter === '' && !shown.some(({ address }) => address === linked)
  const rows = isLinkedLeftOut ? [{ address: linked, provider: byAddress.get(linked)?.provider ?? '' }, ...shown] : shown
  return (
    <>
      <p class="dim">
        {formatCount(total, 'resource')} in version {version}
        {author && <> by {author}</>}
        {createdMs && (
          <>
            , <Age ms={createdMs} /> ago
          </>
        )}
      </p>
      {pending.length > 0 && (
        <Notice isError title={`${formatCount(pending.length, 'operation')} had begun when the engine ended`}>
          <ul class="plain">
            {pending.map(({ type, address }) => (
              <li key={address}>
                {type} <code>{visibleText(address)}</code>
              </li>
            ))}
          </ul>
        </Notice>
      )}
      {total > 10 && (
        <input
          type="text"
          aria-label="Filter the resources"
          placeholder="Filter by address, type or provider"
          value={filter}
          onInput={event => setFilter(event.currentTarget.value)}
        />
      )}
      <ul class="plain rows resources">
        {rows.map(({ address, provider }) => (
          <ResourceRow key={address} stack={stack} version={version} address={address} provider={provider} isLinked={address === linked} />
        ))}
      </ul>
      {matching.length === 0 && <p class="hint">{total === 0 ? 'The state has no resources.' : 'No resource matches the filter.'}</p>}
      {(matching.length > maxShown || total > resources.length) && (
        <p class="hint">
          {formatNumber(Math.min(maxShown, matching.length))} of {formatNumber(filter === '' ? total : matching.length)} are shown: filter
          them, or use the command.
        </p>
      )}
      <p>
        <a href={pathTo(['stacks', stack.namespace, stack.name, 'state'])}>Versions of the state</a>
      </p>
    </>
  )
}
