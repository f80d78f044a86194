import type { KubeObject } from '../../object/index.ts'
import { formatAge } from './human-duration.ts'
import type { PrinterColumn, SelectableField } from './printer-columns.ts'
import { column, nameColumn } from './printer-columns.ts'

// Events are stored as core/v1; events.k8s.io/v1 is the same object with other names of some fields.
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
  // Required in this version.
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

/** The columns read the stored object, which both versions share. */
export const eventColumns: readonly PrinterColumn[] = [
  column('Last Seen', 'Time of the last occurrence.', (object, nowMs) => formatAge(lastSeen(object), nowMs)),
  column('Type', 'Type of the event: Normal or Warning.', object => event(object).type),
  column('Reason', 'Machine-readable reason.', object => event(object).reason),
  column('Object', 'The object that the event is about.', object => {
    const { kind = '', name = '' } = event(object).involvedObject ?? {}
    return name ? `${kind.toLowerCase()}/${name}` : kind.toLowerCase()
  }),
  column('Subobject', 'The part of the object that the event is about.', object => event(object).involvedObject?.fieldPath ?? '', 1),
  column(
    'Source',
    'The component that reports the event.',
    object => [event(object).source?.component ?? event(object).reportingComponent, event(object).source?.host].filter(Boolean).join(', '),
    1,
  ),
  column('Message', 'Human-readable description of the event.', object => (event(object).message ?? '').trim()),
  column('First Seen', 'Time of the first occurrence.', (object, nowMs) => formatAge(firstSeen(object), nowMs), 1),
  column('Count', 'Number of occurrences.', object => event(object).series?.count ?? event(object).count ?? 1, 1),
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
