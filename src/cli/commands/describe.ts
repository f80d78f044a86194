import { formatRunOptions, labels, phaseOf, type Run, runResource, type Stack } from '../../api/index.ts'
import { type Client, type EventBody, eventResource } from '../../kubernetes/client/index.ts'
import { formatDuration, isReason, type KubeObject, type Resource } from '../../kubernetes/object/index.ts'
import { escapeHidden, stringifyYaml, truncateText } from '../../kubernetes/util/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { discoverTypes, findTypes, type KnownType, parseTarget } from '../find-types.ts'
import { renderTable } from '../output/table.ts'
import { planText } from '../request-run.ts'
import { stackNotFound } from '../targets.ts'
import { print } from '../terminal.ts'

/** `oarlock describe TYPE NAME` or `TYPE/NAME`: prints an object with its conditions, the Runs of a Stack, and events. */
export async function describe(typed: string, name: string | undefined, options: AccessOptions): Promise<void> {
  const target = name === undefined ? parseTarget(typed, '') : { type: typed, name }
  await withClient(options, async client => {
    const types = await discoverTypes(client)
    if (target.type === '' || target.name === '') throw incompleteTarget(target.type || target.name, types)
    for (const resource of findTypes(target.type, types)) {
      const namespace = resource.scope === 'Namespaced' ? namespaceOf(client, options) : undefined
      const object = await getObject(client, resource, target.name, namespace)
      const runs = isStack(resource) ? await unlessForbidden(listRuns(client, object)) : []
      const events = await unlessForbidden(listEvents(client, object))
      for (const line of await describeLines(resource, object, runs, events, Date.now())) print(line)
    }
  })
}

/** An object that the user can read is described without the lists that the user cannot read. */
async function unlessForbidden<T>(list: Promise<T>): Promise<T | 'forbidden'> {
  try {
    return await list
  } catch (error) {
    if (isReason(error, 'Forbidden')) return 'forbidden'
    throw error
  }
}

/** `oarlock describe stack` lacks the name, `oarlock describe hello` the type. */
function incompleteTarget(typed: string, types: readonly KnownType[]): CliError {
  const isType = types.some(({ names }) => names.includes(typed.toLowerCase()))
  return isType
    ? usageError('a name is missing', `use oarlock describe ${typed} NAME`)
    : usageError(`the type of ${JSON.stringify(typed)} is missing`, `use for example: oarlock describe stack ${typed}`)
}

async function getObject(client: Client, resource: Resource, name: string, namespace: string | undefined): Promise<KubeObject> {
  try {
    return await client.resource(resource).get(name, { namespace })
  } catch (error) {
    if (namespace === undefined || !isReason(error, 'NotFound')) throw error
    if (isStack(resource)) throw await stackNotFound(client, name, namespace)
    throw new CliError(`${resource.kind.toLowerCase()} "${name}" not found in namespace ${namespace}`, {
      exitCode: exitCodes.notFound,
      cause: error,
    })
  }
}

const isStack = ({ group, kind }: Resource<unknown>) => group === 'oarlock.dev' && kind === 'Stack'

async function listRuns(client: Client, { metadata }: KubeObject): Promise<Run[]> {
  const { items } = await client
    .resource(runResource)
    .listAll({ namespace: metadata.namespace, labelSelector: `${labels.stack}=${metadata.name}` })
  return items.sort((a, b) => b.spec.epoch - a.spec.epoch)
}

type Event = KubeObject<EventBody>
async function listEvents(client: Client, { metadata }: KubeObject): Promise<Event[]> {
  const fieldSelector = `involvedObject.uid=${metadata.uid}`
  const { items } = await client.resource(eventResource).list({ namespace: metadata.namespace ?? 'default', fieldSelector, limit: 200 })
  return items.sort((a, b) => (eventTime(a) < eventTime(b) ? -1 : 1)).slice(-15)
}
const eventTime = (event: Event) => event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp

type Conditioned = { conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[] }

/** The lines that `describe` prints. */
async function describeLines(
  resource: Resource<unknown>,
  object: KubeObject,
  runs: readonly Run[] | 'forbidden',
  events: readonly Event[] | 'forbidden',
  nowMs: number,
): Promise<string[]> {
  const { metadata, spec, status } = object as KubeObject<{ spec?: object; status?: object & Conditioned }>
  const { conditions = [], ...rest } = status ?? {}
  const age = (time: string | undefined) => (time ? formatDuration(Math.max(0, nowMs - Date.parse(time))) : '')
  const lines = [
    `Name:         ${metadata.name}`,
    ...(metadata.namespace ? [`Namespace:    ${metadata.namespace}`] : []),
    `Kind:         ${resource.kind} (${resource.apiVersion})`,
    `Created:      ${metadata.creationTimestamp} (${age(metadata.creationTimestamp)} ago)`,
    ...(metadata.deletionTimestamp
      ? [`Deleting:     for ${age(metadata.deletionTimestamp)}, finalizers: ${metadata.finalizers?.join(', ') || 'none'}`]
      : []),
    ...pairs('Labels', metadata.labels),
    ...pairs('Annotations', metadata.annotations),
  ]
  const { plan, approval, rejection } = isStack(resource) ? ((object as unknown as Stack).status ?? {}) : {}
  if (plan) {
    const options = [plan.mode === 'Refresh' ? '--refresh-only' : '', formatRunOptions(plan.options)].filter(Boolean).join(' ')
    lines.push(`Plan:         ${planText(plan)} (${options ? `with ${options}, ` : ''}digest ${plan.digest})`)
  }
  if (approval?.runName !== undefined)
    lines.push(
      escapeHidden(`Approval:     of the plan of run/${approval.runName} by ${approval.user ?? 'an unknown user'} at ${approval.at}`),
    )
  if (plan && rejection?.runName === plan.runName)
    lines.push(
      escapeHidden(
        `Rejection:    of this plan by ${rejection.user ?? 'an unknown user'} at ${rejection.at}: ${rejection.reason ?? 'no reason was given'}`,
      ),
    )
  const section = async (title: string, value: object | undefined) => {
    if (value && Object.keys(value).length > 0) lines.push(`${title}:`, ...indented(value))
  }
  const { apiVersion: _a, kind: _k, metadata: _m, spec: _s, status: _t, ...others } = object
  await section('Spec', spec)
  await section('Status', rest)
  await section('Data', resource.kind === 'Secret' ? hideData(others) : others)
  if (conditions.length > 0) {
    const rows = conditions.map(({ type, status, reason = '', lastTransitionTime, message = '' }) => [
      `  ${type}`,
      status,
      reason,
      age(lastTransitionTime),
      message,
    ])
    lines.push('Conditions:', ...renderTable(['  TYPE', 'STATUS', 'REASON', 'SINCE', 'MESSAGE'], rows))
  }
  if (runs === 'forbidden') lines.push('Runs: no permission to list runs')
  else if (runs.length > 0) {
    const rows = runs.map(({ metadata, spec, status }) => [
      `  ${metadata.name}`,
      kindText(spec),
      phaseOf({ spec, status }),
      spec.reason,
      age(metadata.creationTimestamp),
      status?.message ?? '',
    ])
    lines.push('Runs:', ...renderTable(['  NAME', 'TYPE', 'PHASE', 'TRIGGER', 'AGE', 'MESSAGE'], rows))
  }
  if (events === 'forbidden') lines.push('Events: no permission to list events')
  else if (events.length > 0) {
    const rows = events.map(event => [
      `  ${age(eventTime(event))}`,
      event.type ?? '',
      event.reason ?? '',
      String(event.count ?? 1),
      event.message ?? '',
    ])
    lines.push('Events:', ...renderTable(['  AGE', 'TYPE', 'REASON', 'COUNT', 'MESSAGE'], rows))
  }
  return lines
}

/** `Apply`, or with the options that a user requested: `Apply --target a.b`. Its line is not too long for many addresses. */
const kindText = ({ type, options }: Run['spec']) => truncateText([type, formatRunOptions(options)].filter(Boolean).join(' '), maxKindChars)
const maxKindChars = 60

function pairs(title: string, values: Record<string, string> | undefined): string[] {
  const entries = Object.entries(values ?? {}).filter(([key]) => key !== 'kubectl.kubernetes.io/last-applied-configuration')
  return entries.map(([key, value], index) => escapeHidden(`${(index === 0 ? `${title}:` : '').padEnd(14)}${key}=${value}`))
}

/** Sizes instead of values: a screen may be recorded (invariant 9). */
function hideData({ data, ...rest }: Record<string, unknown>): Record<string, unknown> {
  const sizes = Object.entries((data ?? {}) as Record<string, string>).map(([key, value]) => [
    key,
    `${Buffer.from(value, 'base64').length} bytes`,
  ])
  return { ...rest, data: Object.fromEntries(sizes) }
}

function indented(value: object): string[] {
  return stringifyYaml(value)
    .trimEnd()
    .split('\n')
    .map(line => `  ${line}`)
}
