import { invalidValue } from '../../../kube/index.ts'
import { eventColumns, eventFields, eventFromCore, eventsGroupFields, eventToCore } from '../core-events.ts'
import type { Row } from './row.ts'

export const eventKinds: readonly Row[] = [
  {
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    schema: 'io.k8s.api.core.v1.Event',
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
    schema: 'io.k8s.api.events.v1.Event',
    columns: eventColumns,
    selectableFields: eventsGroupFields,
    storageName: 'events',
    fromStorage: eventFromCore,
    toStorage: eventToCore,
  },
]
