import type { ComponentType } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { type Action, type StackFacts, type StackRow, type StackSection, stackSections } from '../../protocol/index.ts'
import { isSuspendedToo } from '../parts/badge.tsx'
import { lazy } from '../parts/lazy.tsx'
import { Notice } from '../parts/notice.tsx'
import { pathTo } from '../router.ts'
import { useView } from '../stream/use-view.ts'
import { DestroyDialog } from './destroy-dialog.tsx'
import { ObjectHeader } from './object-header.tsx'
import { ObjectState } from './object-state.tsx'
import { SectionNav } from './section-nav.tsx'
import { OverviewSection } from './stack/overview-section.tsx'
import type { SectionProps, StackObject } from './stack/section-props.ts'

const sections: Readonly<Record<StackSection, readonly [label: string, content: ComponentType<SectionProps>]>> = {
  overview: ['Overview', OverviewSection],
  resources: ['Resources', lazy(async () => (await import('./stack/resources-section.tsx')).ResourcesSection)],
  outputs: ['Outputs', lazy(async () => (await import('./stack/outputs-section.tsx')).OutputsSection)],
  variables: ['Variables', lazy(async () => (await import('./stack/variables-section.tsx')).VariablesSection)],
  state: ['State', lazy(async () => (await import('./stack/state-section.tsx')).StateSection)],
  dependencies: ['Dependencies', lazy(async () => (await import('./stack/dependencies-section.tsx')).DependenciesSection)],
  drift: ['Drift', lazy(async () => (await import('./stack/drift-section.tsx')).DriftSection)],
  events: ['Events', lazy(async () => (await import('./stack/events-section.tsx')).EventsSection)],
  yaml: ['YAML', lazy(async () => (await import('./stack/yaml-section.tsx')).YamlSection)],
}

/** @param section of the address; undefined for the first. */
export function StackPage({
  namespace,
  name,
  section = 'overview',
}: {
  readonly namespace: string
  readonly name: string
  readonly section?: string
}) {
  const view = useView<StackFacts>({ kind: 'stack', namespace, name })
  const [destroying, setDestroying] = useState<Action>()
  const facts = view.facts.value
  const error = view.error.value
  const wasShown = useRef(false)
  if (facts?.row) wasShown.current = true
  const isDeleted = wasShown.current && !facts?.row && (error === undefined ? facts !== undefined : error.code === 'NotFound')
  const metadata = (facts?.object as StackObject | undefined)?.metadata
  return (
    <>
      {facts?.row ? (
        <KnownStack facts={facts} row={facts.row} section={section} onDestroy={setDestroying} />
      ) : isDeleted ? (
        <Notice title={`Stack ${namespace}/${name} is deleted`}>
          <p>It was deleted while this page was open.</p>
          <a href={pathTo(['stacks'])}>All Stacks</a>
        </Notice>
      ) : (
        <ObjectState kind="Stack" name={`${namespace}/${name}`} error={error} isRead={facts !== undefined} />
      )}
      {/* Not a part of the Stack that is shown: its result stays when the Stack has disappeared. */}
      {destroying && (
        <DestroyDialog
          action={destroying}
          stack={{ namespace, name }}
          version={metadata}
          runs={facts?.runs ?? []}
          isDeleted={isDeleted}
          onClose={() => setDestroying(undefined)}
        />
      )}
    </>
  )
}

function KnownStack({
  facts,
  row,
  section,
  onDestroy,
}: {
  readonly facts: StackFacts
  readonly row: StackRow
  readonly section: string
  readonly onDestroy: (action: Action) => void
}) {
  const { namespace, name } = row
  const object = (facts.object ?? {}) as StackObject
  const known = stackSections.find(each => each === section)
  const Section = known && sections[known][1]
  const { lastRun } = object.status ?? {}
  return (
    <article class="object-page">
      <ObjectHeader namespace={namespace} name={name} state={row.state} lead={row.message}>
        {isSuspendedToo(row) && <span class="tag">suspended</span>}
      </ObjectHeader>
      <SectionNav
        label="Parts of the Stack"
        sections={stackSections.map(each => ({
          label: sections[each][0],
          href: pathTo(['stacks', namespace, name, ...(each === 'overview' ? [] : [each])]),
          isCurrent: each === known,
        }))}
      />
      {Section ? (
        <Section {...{ namespace, name, row, object, onDestroy }} runs={facts.runs} version={`${lastRun?.name} ${lastRun?.phase}`} />
      ) : (
        <Notice title={`The page of a Stack has no part ${section}`}>
          <a href={pathTo(['stacks', namespace, name])}>Overview of the Stack</a>
        </Notice>
      )}
    </article>
  )
}
