import type { KubeObject } from '../../object/index.ts'
import { formatAge } from './human-duration.ts'
import type { PrinterColumn, SelectableField } from './printer-columns.ts'
import { column, nameColumn } from './printer-columns.ts'

// Events are stored as core/v1; events.k8s.io/v1 is the same object with some fields renamed.
const renamed = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
] as const

export function eventToCore(object: KubeObject): KubeObject {
  const core: KubeObject = { ...object, apiVersion: 'v1' }
  for (const [here, there] of renamed) {
    if (core[there] !== undefined) core[here] = core[there]
    delete core[there]
  }
  // Never left out in this version.
  core.reportingComponent ??= ''
  core.reportingInstance ??= ''
  return core
}

export function eventFromCore(text: string): string {
  const event = JSON.parse(text) as KubeObject
  event.apiVersion = 'events.k8s.io/v1'
  for (const [here, there] of renamed) {
    if (event[here] !== undefined) event[there] = event[here]
    delete event[here]
  }
  for (const field of ['reportingController', 'reportingInstance']) if (event[field] === '') delete event[field]
  return JSON.stringify(event).replace(/[\u0080-\uffff]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

type Event = {
  involvedObject?: Record<string, string>
  source?: { component?: string; host?: string }
  series?: { count?: number; lastObservedTime?: string }
  firstTimestamp?: string
  lastTimestamp?: string
  eventTime?: string
  count?: number
  message?: string
  reason?: string
  type?: string
  reportingComponent?: string
}
const event = (object: KubeObject) => object as KubeObject<Event>
const firstSeen = (object: KubeObject) => event(object).firstTimestamp ?? event(object).eventTime
const lastSeen = (object: KubeObject) => event(object).series?.lastObservedTime ?? event(object).lastTimestamp ?? firstSeen(object)

/** Columns read the stored form, which both versions share. */
export const eventColumns: readonly PrinterColumn[] = [
  column('Last Seen', 'When it happened last.', (object, nowMs) => formatAge(lastSeen(object), nowMs)),
  column('Type', 'Normal or Warning.', object => event(object).type),
  column('Reason', 'Why, for machines.', object => event(object).reason),
  column('Object', 'What it is about.', object => {
    const { kind = '', name = '' } = event(object).involvedObject ?? {}
    return name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase()
  }),
  column('Subobject', 'The part of the object.', object => event(object).involvedObject?.fieldPath ?? '', 1),
  column(
    'Source',
    'Who reports it.',
    object => [event(object).source?.component ?? event(object).reportingComponent, event(object).source?.host].filter(Boolean).join(', '),
    1,
  ),
  column('Message', 'What happened, for people.', object => (event(object).message ?? '').trim()),
  column('First Seen', 'When it happened first.', (object, nowMs) => formatAge(firstSeen(object), nowMs), 1),
  column('Count', 'How often it happened.', object => event(object).series?.count ?? event(object).count ?? 1, 1),
  { ...nameColumn, priority: 1 },
]

const involved = (field: string): SelectableField => ({
  field: `involvedObject.${field}`,
  read: object => event(object).involvedObject?.[field] ?? '',
})
export const eventFields: readonly SelectableField[] = [
  ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(involved),
  { field: 'reason', read: object => event(object).reason ?? '' },
  { field: 'reportingComponent', read: object => event(object).reportingComponent ?? '' },
  { field: 'source', read: object => event(object).source?.component ?? event(object).reportingComponent ?? '' },
  { field: 'type', read: object => event(object).type ?? '' },
]
export const eventsGroupFields: readonly SelectableField[] = eventFields.map(({ field, read }) => ({
  field: field.replace('involvedObject', 'regarding').replace('reportingComponent', 'reportingController'),
  read,
}))
