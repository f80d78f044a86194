import { badRequest, invalid, invalidValue, isJsonObject, type KubeObject, type StatusCause } from '../../object/index.ts'

export type PodStream = 'attach' | 'exec' | 'log' | 'portforward'

/**
 * The path and query of a kubelet that serve a subresource of a Pod; undefined for the log of a Pod without a Node, which is empty.
 * @throws {StatusError} BadRequest, Invalid.
 */
export function kubeletPath(pod: KubeObject, stream: PodStream, query: URLSearchParams): { node: string; path: string } | undefined {
  const { name, namespace = '' } = pod.metadata
  const { nodeName } = fields(pod.spec)
  const options = stream === 'log' ? logQuery(name, query) : stream === 'portforward' ? portQuery(query) : streamQuery(name, stream, query)
  const container = stream === 'portforward' ? '' : containerOf(pod, stream, query.get('container') ?? '')
  if (typeof nodeName !== 'string' || nodeName === '') {
    if (stream === 'log') return undefined
    throw badRequest(`pod ${name} does not have a host assigned`)
  }
  const prefix = { attach: 'attach', exec: 'exec', log: 'containerLogs', portforward: 'portForward' }[stream]
  const parts = [prefix, namespace, name, ...(container ? [container] : [])].map(encodeURIComponent)
  const text = options.toString()
  return { node: nodeName, path: `/${parts.join('/')}${text && `?${text}`}` }
}

/** @throws {StatusError} BadRequest if there is no such container, or several and none is named. */
function containerOf(pod: KubeObject, stream: PodStream, wanted: string): string {
  const { name } = pod.metadata
  const spec = fields(pod.spec)
  const [containers, initContainers, ephemeral] = [spec.containers, spec.initContainers, spec.ephemeralContainers].map(namesIn)
  if (wanted === '') {
    if (containers!.length === 1) return containers![0]!
    const others = initContainers!.length > 0 ? ` or one of the init containers: [${initContainers!.join(' ')}]` : ''
    const lists = `choose one of: [${containers!.join(' ')}]${others}`
    throw badRequest(`a container name must be specified for pod ${name}, ${lists}`)
  }
  if ([...containers!, ...initContainers!, ...ephemeral!].includes(wanted)) return wanted
  throw badRequest(stream === 'log' ? `container ${wanted} is not valid for pod ${name}` : `container ${wanted} not found in pod ${name}`)
}

const flags: Readonly<Record<string, string>> = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' }

function streamQuery(pod: string, stream: PodStream, query: URLSearchParams): URLSearchParams {
  const sent = new URLSearchParams()
  for (const [name, flag] of Object.entries(flags)) if (isTrue(query.get(name))) sent.set(flag, '1')
  if (stream === 'exec') {
    const command = query.getAll('command')
    if (command.length === 0) throw badRequest(`you must specify at least 1 command to execute in pod ${pod}`)
    for (const part of command) sent.append('command', part)
  }
  if (!['input', 'output', 'error'].some(name => sent.has(name))) throw badRequest('you must specify at least 1 of stdin, stdout, stderr')
  return sent
}

function portQuery(query: URLSearchParams): URLSearchParams {
  const sent = new URLSearchParams()
  for (const port of query.getAll('ports')) sent.append('port', port)
  return sent
}

const booleans = ['follow', 'previous', 'timestamps']
/** With the smallest value. */
const counts: Readonly<Record<string, number>> = { limitBytes: 1, sinceSeconds: 1, tailLines: 0 }
const streams = ['All', 'Stdout', 'Stderr']

/** @throws {StatusError} Invalid. */
function logQuery(pod: string, query: URLSearchParams): URLSearchParams {
  const sent = new URLSearchParams()
  const causes: StatusCause[] = []
  if (isTrue(query.get('insecureSkipTLSVerifyBackend')))
    causes.push(invalidValue('insecureSkipTLSVerifyBackend', true, 'must not be set: the certificate of a kubelet is always verified'))
  for (const name of booleans) if (isTrue(query.get(name))) sent.set(name, 'true')
  for (const [name, min] of Object.entries(counts)) {
    const text = query.get(name)
    if (text === null || text === '') continue
    const value = Number(text)
    if (!/^[-+]?[0-9]{1,15}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 40))}: invalid syntax`)
    if (value < min) causes.push(invalidValue(name, value, `must be greater than ${min === 0 ? 'or equal to ' : ''}0`))
    sent.set(name, String(value))
  }
  const sinceTime = query.get('sinceTime')
  if (sinceTime) {
    if (sent.has('sinceSeconds'))
      causes.push(invalidValue('sinceTime', sinceTime, 'at most one of `sinceTime` or `sinceSeconds` may be specified'))
    if (Number.isNaN(Date.parse(sinceTime)))
      throw badRequest(`sinceTime ${JSON.stringify(sinceTime.slice(0, 40))} must be a time in RFC 3339`)
    sent.set('sinceTime', sinceTime)
  }
  const stream = query.get('stream')
  if (stream) {
    if (!streams.includes(stream)) causes.push(invalidValue('stream', stream.slice(0, 40), `must be one of ${streams.join(', ')}`))
    sent.set('stream', stream)
  }
  if (causes.length > 0) throw invalid({ group: '', plural: 'pods', kind: 'PodLogOptions' }, pod, causes)
  return sent
}

const isTrue = (text: string | null) => text !== null && !['', '0', 'f', 'F', 'false', 'FALSE', 'False'].includes(text)
const namesIn = (list: unknown): string[] => (Array.isArray(list) ? list.map(item => String(fields(item).name ?? '')) : [])
const fields = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {})
