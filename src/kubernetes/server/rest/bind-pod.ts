import { conflict, invalid, isJsonObject, type KubeObject, notFound, requiredValue, rfc3339, unsupportedValue } from '../../object/index.ts'
import { bindingKind } from '../registry/index.ts'
import { type Call, keyOf, type Services, sendObject, withKind } from './call.ts'
import { decidePut } from './decide-update.ts'
import { decodeBody } from './decode.ts'
import { mutate, readEntry } from './mutate.ts'
import { readWriteOptions } from './write-options.ts'

/**
 * The binding subresource of a Pod, with which a scheduler assigns it to a Node. The Node itself is not looked up, as in Kubernetes: with partitions it may be
 * on another server.
 * @throws {StatusError} NotFound; Conflict for a Pod that has a Node, is being deleted, or waits for scheduling gates; Invalid without a Node.
 */
export async function bindPod(services: Services, call: Call): Promise<void> {
  const { store } = services
  const { kind, table, name } = call.target
  const options = readWriteOptions('CreateOptions', call.input.query, call.input.userAgent, store.nowMs)
  const { object, sent } = decodeBody(withKind(call, bindingKind), options)
  const target = isJsonObject(object.target) ? object.target : {}
  const causes = [
    ...(target.kind && target.kind !== 'Node' ? [unsupportedValue('target.kind', target.kind, ['Node', ''])] : []),
    ...(target.name ? [] : [requiredValue('target.name', '')]),
  ]
  if (causes.length > 0) throw invalid(bindingKind, name, causes)
  const reject = (reason: string) => conflict({ group: '', plural: 'pods/binding' }, name, reason)
  await mutate(store, table, keyOf(call.target), head => {
    if (!head) throw notFound(kind, name)
    const pod = readEntry(kind, head)
    if (sent.uid && sent.uid !== pod.metadata.uid)
      throw reject(`Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${pod.metadata.uid}`)
    const spec = isJsonObject(pod.spec) ? pod.spec : {}
    if (pod.metadata.deletionTimestamp) throw reject(`pod ${name} is being deleted, cannot be assigned to a host`)
    if (spec.nodeName) throw reject(`pod ${name} is already assigned to node ${JSON.stringify(spec.nodeName)}`)
    if (Array.isArray(spec.schedulingGates) && spec.schedulingGates.length > 0)
      throw reject(`pod ${name} has non-empty .spec.schedulingGates`)
    return decidePut(services, call, bound(pod, String(target.name), sent.annotations, store.nowMs), pod, options)
  })
  sendObject(call, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, 201, options.warnings)
}

function bound(pod: KubeObject, nodeName: string, annotations: Readonly<Record<string, string>> | undefined, nowMs: number): KubeObject {
  const status = isJsonObject(pod.status) ? pod.status : {}
  const conditions = (Array.isArray(status.conditions) ? status.conditions : []) as Record<string, unknown>[]
  const before = conditions.find(({ type }) => type === 'PodScheduled')
  const lastTransitionTime = before?.status === 'True' ? before.lastTransitionTime : rfc3339(nowMs)
  const scheduled = { lastProbeTime: null, lastTransitionTime, status: 'True', type: 'PodScheduled' }
  return {
    ...pod,
    metadata: { ...pod.metadata, ...(annotations && { annotations: { ...pod.metadata.annotations, ...annotations } }) },
    spec: { ...(pod.spec as object), nodeName },
    status: { ...status, conditions: before ? conditions.map(each => (each === before ? scheduled : each)) : [...conditions, scheduled] },
  } as KubeObject
}
