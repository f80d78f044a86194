import { forbiddenField, invalidValue, nameErrors, requiredValue, type StatusCause } from '../../../object/index.ts'
import {
  configKey,
  duplicates,
  fieldsOf,
  inRange,
  intOf,
  invalidName,
  itemsOf,
  notNegative,
  oneOf,
  optionalId,
  portName,
  portNumber,
  portNumberOrName,
  resourceErrors,
  textOf,
} from './checks.ts'
import type { Fields, RuleTable, TypeRules, ValidationContext } from './type-rules.ts'

/** Whether the tag is `latest` or missing, so that the image may change. */
export function isLatest(image: string): boolean {
  if (image.includes('@')) return false
  const tag = image.slice(image.lastIndexOf('/') + 1).split(':')[1]
  return tag === undefined || tag === 'latest'
}

const container: TypeRules = {
  defaults: { terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' },
  setDefaults: value => {
    value.imagePullPolicy ??= isLatest(textOf(value.image)) ? 'Always' : 'IfNotPresent'
  },
  enumOrder: { terminationMessagePolicy: ['File', 'FallbackToLogsOnError'] },
  validate: (value, { path }) => [
    ...containerName(path, value),
    ...containerImage(path, value),
    ...duplicates(`${path}.ports`, itemsOf(value.ports), 'name', new Set(), isPortName),
    ...probeErrors(path, value),
    ...resourceErrors(`${path}.resources`, fieldsOf(value.resources)),
    ...envFromErrors(`${path}.envFrom`, itemsOf(value.envFrom)),
  ],
}

const isPortName = (name: string) => portName('', name).length === 0

function containerName(path: string, { name }: Fields): StatusCause[] {
  return textOf(name) === '' ? [requiredValue(`${path}.name`)] : invalidName(`${path}.name`, textOf(name), 'dns1123Label')
}

// Only the containers of a Pod need an image; those of a template may be completed by a controller. Kubernetes reports both errors.
function containerImage(path: string, { image }: Fields): StatusCause[] {
  const reference = textOf(image)
  if (reference === '') return [requiredValue(`${path}.image`)]
  return reference.trim() === reference ? [] : [invalidValue(`${path}.image`, reference, 'must not have leading or trailing whitespace')]
}

/** Rules that differ between the probes of a container. */
function probeErrors(path: string, value: Fields): StatusCause[] {
  const causes: StatusCause[] = []
  for (const field of ['livenessProbe', 'startupProbe']) {
    const probe = value[field]
    if (probe === undefined) continue
    const { successThreshold } = fieldsOf(probe)
    if (successThreshold !== 1) causes.push(invalidValue(`${path}.${field}.successThreshold`, successThreshold, 'must be 1'))
  }
  const gracePeriod = fieldsOf(value.readinessProbe).terminationGracePeriodSeconds
  if (gracePeriod !== undefined) {
    const reason = 'must not be set for readinessProbes'
    causes.push(invalidValue(`${path}.readinessProbe.terminationGracePeriodSeconds`, gracePeriod, reason))
  }
  return causes
}

// Kubernetes omits the index in some of these paths.
function envFromErrors(path: string, sources: Fields[]): StatusCause[] {
  return sources.flatMap((source, index) => {
    const prefix = textOf(source.prefix)
    const causes = prefix === '' ? [] : envNameErrors(`${path}[${index}].prefix`, prefix)
    const provided = ['configMapRef', 'secretRef'].filter(field => source[field] !== undefined)
    for (const field of provided) causes.push(...referenceName(`${path}[${index}].${field}.name`, fieldsOf(source[field]).name))
    if (provided.length === 0) causes.push(invalidValue(path, '', 'must specify one of: `configMapRef` or `secretRef`'))
    if (provided.length > 1) causes.push(invalidValue(path, '', 'may not have more than one field specified at a time'))
    return causes
  })
}

/** The required name of a ConfigMap or Secret. */
function referenceName(path: string, name: unknown): StatusCause[] {
  return textOf(name) === '' ? [requiredValue(path)] : invalidName(path, textOf(name), 'dns1123Subdomain')
}

function envNameErrors(path: string, name: string): StatusCause[] {
  if (/^[\x20-\x3c\x3e-\x7e]+$/.test(name)) return []
  return [invalidValue(path, name, "a valid environment variable name must consist only of printable ASCII characters other than '='")]
}

const envSources = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef']
const envSourcesText = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`'
const envFieldPaths = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]
const containerResourcePaths = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]
const wholeUnits = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei']

function envErrors(value: Fields, { path }: ValidationContext): StatusCause[] {
  const name = textOf(value.name)
  const causes = name === '' ? [requiredValue(`${path}.name`)] : envNameErrors(`${path}.name`, name)
  if (value.valueFrom === undefined) return causes
  const sourcePath = `${path}.valueFrom`
  const source = fieldsOf(value.valueFrom)
  const provided = envSources.filter(field => source[field] !== undefined)
  if (source.fieldRef) causes.push(...fieldReferenceErrors(`${sourcePath}.fieldRef`, fieldsOf(source.fieldRef), envFieldPaths))
  if (provided.length === 0) causes.push(invalidValue(sourcePath, '', envSourcesText))
  else if (textOf(value.value) !== '') causes.push(invalidValue(sourcePath, '', 'may not be specified when `value` is not empty'))
  else if (provided.length > 1) causes.push(invalidValue(sourcePath, '', 'may not have more than one field specified at a time'))
  return causes
}

/** A reference to a field of the Pod: one of `allowed`, or a single label or annotation. */
export function fieldReferenceErrors(path: string, { apiVersion, fieldPath }: Fields, allowed: readonly string[]): StatusCause[] {
  const fieldName = textOf(fieldPath)
  if (fieldName === '') return [requiredValue(`${path}.fieldPath`)]
  if (textOf(apiVersion) === '') return [requiredValue(`${path}.apiVersion`)]
  if (/^metadata\.(labels|annotations)\['[^']+'\]$/.test(fieldName)) return []
  if (allowed.includes(fieldName)) return []
  if (knownFieldPaths.has(fieldName)) return oneOf(`${path}.fieldPath`, fieldName, allowed.toSorted())
  return [invalidValue(`${path}.fieldPath`, fieldName, `error converting fieldPath: field label not supported: ${fieldName}`)]
}

const knownFieldPaths = new Set([
  ...envFieldPaths,
  'metadata.labels',
  'metadata.annotations',
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
])

function resourceReferenceErrors({ resource, divisor }: Fields, { path }: ValidationContext): StatusCause[] {
  const name = textOf(resource)
  if (name === '') return [requiredValue(`${path}.resource`)]
  if (!/^(requests|limits)\.hugepages-/.test(name) && !containerResourcePaths.includes(name)) {
    return oneOf(`${path}.resource`, name, containerResourcePaths)
  }
  if (divisor === undefined || divisor === '0') return []
  if (name.endsWith('.cpu')) {
    const reason = "only divisor's values 1m and 1 are supported with the cpu resource"
    return ['1m', '1'].includes(textOf(divisor)) ? [] : [invalidValue(`${path}.divisor`, name, reason)]
  }
  const resourceKind = name.endsWith('.memory') ? 'memory' : name.includes('hugepages-') ? 'hugepages' : 'local ephemeral storage'
  const reason = `only divisor's values ${wholeUnits.join(', ')} are supported with the ${resourceKind} resource`
  return wholeUnits.includes(textOf(divisor)) ? [] : [invalidValue(`${path}.divisor`, name, reason)]
}

const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const

/** Exactly one handler must be set; the handlers themselves are validated by their own types. */
function handlerErrors(value: Fields, { path }: ValidationContext): StatusCause[] {
  const [first, ...others] = handlers.filter(handler => value[handler] !== undefined)
  if (first === undefined) return [requiredValue(path, 'must specify a handler type')]
  return others.map(handler => forbiddenField(`${path}.${handler}`, 'may not specify more than 1 handler type'))
}

const keySelector: TypeRules = {
  validate: ({ name, key }, { path }) => [
    ...nameErrors(textOf(name), 'dns1123Subdomain').map(reason => invalidValue(`${path}.name`, textOf(name), reason)),
    ...configKey(`${path}.key`, key),
  ],
}

const probeCounts = ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold']

/** Rules of the types in a container. */
export const containerRules: RuleTable = {
  'core.v1.Container': container,
  'core.v1.EphemeralContainer': container,
  'core.v1.ContainerPort': {
    enumOrder: { protocol: ['SCTP', 'TCP', 'UDP'] },
    validate: ({ name, containerPort, hostPort }, { path }) => [
      ...(textOf(name) === '' ? [] : portName(`${path}.name`, textOf(name))),
      ...(intOf(containerPort) === 0 ? [requiredValue(`${path}.containerPort`)] : portNumber(`${path}.containerPort`, containerPort)),
      ...(hostPort === undefined ? [] : portNumber(`${path}.hostPort`, hostPort)),
    ],
  },
  'core.v1.EnvVar': { validate: envErrors },
  'core.v1.ObjectFieldSelector': { defaults: { apiVersion: 'v1' } },
  'core.v1.ResourceFieldSelector': { validate: resourceReferenceErrors },
  'core.v1.ConfigMapKeySelector': keySelector,
  'core.v1.SecretKeySelector': keySelector,
  'core.v1.Probe': {
    defaults: { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
    validate: (value, context) => [
      ...handlerErrors(value, context),
      ...probeCounts.flatMap(field => notNegative(`${context.path}.${field}`, value[field])),
      ...(value.terminationGracePeriodSeconds !== undefined && intOf(value.terminationGracePeriodSeconds) <= 0
        ? [invalidValue(`${context.path}.terminationGracePeriodSeconds`, value.terminationGracePeriodSeconds, 'must be greater than 0')]
        : []),
    ],
  },
  'core.v1.LifecycleHandler': { validate: handlerErrors },
  'core.v1.ExecAction': { required: { command: '' } },
  'core.v1.HTTPGetAction': {
    defaults: { path: '/', scheme: 'HTTP' },
    validate: ({ port }, { path }) => portNumberOrName(`${path}.port`, port),
  },
  'core.v1.TCPSocketAction': { validate: ({ port }, { path }) => portNumberOrName(`${path}.port`, port) },
  'core.v1.GRPCAction': { validate: ({ port }, { path }) => portNumber(`${path}.port`, port) },
  'core.v1.SecurityContext': {
    validate: (value, { path }) => {
      const causes = ['runAsUser', 'runAsGroup'].flatMap(field => optionalId(`${path}.${field}`, value[field]))
      const isPrivileged = value.privileged === true
      if (isPrivileged && value.allowPrivilegeEscalation === false) {
        causes.push(invalidValue(path, value, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'))
      }
      return causes
    },
  },
  'core.v1.PodSecurityContext': {
    validate: (value, { path }) => [
      ...['runAsUser', 'runAsGroup', 'fsGroup'].flatMap(field => optionalId(`${path}.${field}`, value[field])),
      ...(Array.isArray(value.supplementalGroups)
        ? value.supplementalGroups.flatMap((group, index) => inRange(`${path}.supplementalGroups[${index}]`, group, 0, 2_147_483_647))
        : []),
      ...itemsOf(value.sysctls).flatMap(({ name }, index) => sysctlErrors(`${path}.sysctls[${index}].name`, textOf(name))),
    ],
  },
}

const sysctlPattern = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$'

function sysctlErrors(path: string, name: string): StatusCause[] {
  if (name === '') return [requiredValue(path)]
  if (name.length <= 253 && /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$/.test(name)) return []
  return [invalidValue(path, name, `must have at most 253 characters and match regex ${sysctlPattern}`)]
}
