import { type EventBody, eventResource } from '../../../kubernetes/client/index.ts'
import type { KubeObject } from '../../../kubernetes/object/index.ts'
import type { StackEvent } from '../../protocol/index.ts'
import { readStack, type StackRequest } from './stack-request.ts'

const maxEvents = 200

/** The Events of a Stack that the server keeps, the newest first. */
export async function stackEvents(request: StackRequest): Promise<StackEvent[]> {
  const { client, namespace } = request
  const { metadata } = await readStack(request)
  const { items } = await client
    .resource(eventResource)
    .list({ namespace, fieldSelector: `involvedObject.uid=${metadata.uid}`, limit: maxEvents })
  return items.map(eventOf).sort((a, b) => b.lastMs - a.lastMs || (a.key < b.key ? -1 : 1))
}

function eventOf(event: KubeObject<EventBody>): StackEvent {
  const { metadata, type = 'Normal', reason = '', message = '', count, source, reportingComponent } = event
  const last = event.lastTimestamp ?? event.eventTime ?? metadata.creationTimestamp
  return {
    ...{ key: metadata.name, type, reason, message, count: count ?? 1 },
    ...{ firstMs: Date.parse(event.firstTimestamp ?? last), lastMs: Date.parse(last) },
    source: source?.component ?? reportingComponent ?? '',
  }
}
