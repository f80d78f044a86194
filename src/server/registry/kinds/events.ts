import { invalidValue } from '../../../kube/index.ts'
import {
  coreEventSchema,
  eventColumns,
  eventFields,
  eventFromCore,
  eventsEventSchema,
  eventsGroupFields,
  eventToCore,
} from '../core-events.ts'
import type { Row } from './row.ts'

export const eventKinds: readonly Row[] = [
  {
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    description: 'Event is a report of an event somewhere in the cluster.',
    fields: coreEventSchema,
    columns: eventColumns,
    selectableFields: eventFields,
    check: ({ involvedObject, metadata }) => {
      const about = (involvedObject as { namespace?: string } | undefined)?.namespace ?? ''
      const isRight = about === metadata.namespace || (about === '' && metadata.namespace === 'default')
      return isRight ? [] : [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')]
    },
  },
  {
    group: 'events.k8s.io',
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    description: 'Event is a report of an event somewhere in the cluster. It generally denotes some state change in the system.',
    fields: eventsEventSchema,
    columns: eventColumns,
    selectableFields: eventsGroupFields,
    storageName: 'events',
    fromStorage: eventFromCore,
    toStorage: eventToCore,
  },
]
