import { equalJson, invalidValue, type KubeObject, qualifiedNameErrors, requiredValue, type StatusCause } from '../../../object/index.ts'
import { eventColumns, eventFields, eventFromCore, eventsGroupFields, eventToCore } from '../core-events.ts'
import { fieldsOf, intOf, textOf } from '../type-rules/index.ts'
import type { KindDeclaration } from './kind-declaration.ts'

export const eventKinds: readonly KindDeclaration[] = [
  {
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    typeName: 'io.k8s.api.core.v1.Event',
    columns: eventColumns,
    selectableFields: eventFields,
    validate: event => eventErrors(event, 'reportingComponent'),
  },
  {
    group: 'events.k8s.io',
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    typeName: 'io.k8s.api.events.v1.Event',
    columns: eventColumns,
    selectableFields: eventsGroupFields,
    storageName: 'events',
    fromStorage: eventFromCore,
    toStorage: eventToCore,
    validate: (event, oldEvent) => {
      const core = eventToCore(event)
      const causes = eventErrors(core, 'reportingController')
      return [...causes, ...(oldEvent ? changeErrors(core, eventToCore(oldEvent)) : strictErrors(core))]
    },
  },
]

const isSet = (value: unknown) => value !== undefined && value !== null

/** Rules of both versions. An Event with an eventTime is of the newer form. */
function eventErrors({ metadata, involvedObject, ...event }: KubeObject, controllerField: string): StatusCause[] {
  const namespace = metadata.namespace ?? ''
  const involvedNamespace = textOf(fieldsOf(involvedObject).namespace)
  const isNew = isSet(event.eventTime)
  const allowedNamespaces = isNew ? ['default', 'kube-system'] : ['default']
  const isAllowed = involvedNamespace === '' ? allowedNamespaces.includes(namespace) : isNew || involvedNamespace === namespace
  const causes = isAllowed ? [] : [invalidValue('involvedObject.namespace', involvedNamespace, 'does not match event.namespace')]
  if (!isNew) return causes
  const controller = textOf(event.reportingComponent)
  if (controller === '') causes.push(requiredValue(controllerField))
  causes.push(...qualifiedNameErrors(controller).map(reason => invalidValue(controllerField, controller, reason)))
  for (const field of ['reportingInstance', 'action', 'reason']) if (textOf(event[field]) === '') causes.push(requiredValue(field))
  for (const [field, maxLength] of maxLengths) {
    if (textOf(event[field]).length > maxLength) causes.push(invalidValue(field, '', `can have at most ${maxLength} characters`))
  }
  return causes
}

const maxLengths = [
  ['reportingInstance', 128],
  ['action', 128],
  ['reason', 128],
  ['message', 1024],
] as const

/** Additional rules of events.k8s.io for new Events. Fields have their core names. */
function strictErrors(event: KubeObject): StatusCause[] {
  const causes = seriesErrors(event)
  if (!isSet(event.eventTime)) causes.push(requiredValue('eventTime'))
  const type = textOf(event.type)
  if (type !== 'Normal' && type !== 'Warning') causes.push(invalidValue('type', '', `has invalid value: ${type}`))
  const { component, host } = fieldsOf(event.source)
  const deprecatedFields = {
    firstTimestamp: isSet(event.firstTimestamp),
    lastTimestamp: isSet(event.lastTimestamp),
    count: isSet(event.count),
    source: isSet(component) || isSet(host),
  }
  for (const [field, isPresent] of Object.entries(deprecatedFields))
    if (isPresent) causes.push(invalidValue(field, '', 'needs to be unset'))
  return causes
}

// Kubernetes validates the reason twice.
const immutableFields = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'reason',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
]

function changeErrors(event: KubeObject, oldEvent: KubeObject): StatusCause[] {
  const causes = equalJson(event.series, oldEvent.series) ? [] : seriesErrors(event)
  for (const field of immutableFields) {
    if (equalJson(event[field] ?? null, oldEvent[field] ?? null)) continue
    const name = field === 'reportingComponent' ? 'reportingController' : field
    causes.push(invalidValue(name, event[field] ?? '', 'field is immutable'))
  }
  return causes
}

function seriesErrors({ series }: KubeObject): StatusCause[] {
  if (!isSet(series)) return []
  const causes: StatusCause[] = []
  if (intOf(fieldsOf(series).count) < 2) causes.push(invalidValue('series.count', '', 'should be at least 2'))
  if (!isSet(fieldsOf(series).lastObservedTime)) causes.push(requiredValue('series.lastObservedTime'))
  return causes
}
