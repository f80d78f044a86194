import { equalJson, type KubeObject } from '../../../object/index.ts'
import { type Fields, fieldsOf, intOf, itemsOf, join, textOf, textsOf } from '../type-rules/index.ts'
import { addressWarnings } from './addresses.ts'
import { podNameWarnings } from './names.ts'
import { deprecatedNodeLabel, nodeTermWarnings } from './node-labels.ts'
import { overlapWarnings } from './overlapping-paths.ts'
import { byteWarnings, claimSpecWarnings, deprecatedVolumePlugins } from './volumes.ts'

/** Warnings about a Pod when it is created. Updates of Pods come from controllers. */
export function podWarnings(pod: KubeObject, oldObject: KubeObject | undefined): string[] {
  return oldObject ? [] : [...podNameWarnings(pod, oldObject), ...specWarnings('', pod as unknown as Fields)]
}

/**
 * Warnings about a Pod template, when the workload is created and when its `spec` changes.
 * @param path the path of the template, such as `spec.template`.
 */
export function templateWarnings(path: string, object: KubeObject, oldObject: KubeObject | undefined): string[] {
  const root = path.split('.')[0] as string
  if (oldObject && equalJson(object[root], oldObject[root])) return []
  return specWarnings(path, path.split('.').reduce(child, object as unknown as Fields))
}

const child = (fields: Fields, field: string): Fields => fieldsOf(fields[field])

const deprecatedAnnotations = [
  ['scheduler.alpha.kubernetes.io/critical-pod', 'non-functional in v1.16+; use the "priorityClassName" field instead'],
  ['security.alpha.kubernetes.io/sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
  ['security.alpha.kubernetes.io/unsafe-sysctls', 'non-functional in v1.11+; use the "sysctls" field instead'],
] as const

type Located = { path: string; container: Fields }

function specWarnings(path: string, template: Fields): string[] {
  const spec = fieldsOf(template.spec)
  const pathOf = (field: string) => join(path, `spec.${field}`)
  const containers = ['initContainers', 'containers'].flatMap(list =>
    itemsOf(spec[list]).map((container, i): Located => ({ path: `${pathOf(list)}[${i}]`, container })),
  )
  const annotations = fieldsOf(fieldsOf(template.metadata).annotations)
  return [
    ...placementWarnings(pathOf, spec),
    ...deprecatedAnnotations
      .filter(([key]) => annotations[key] !== undefined)
      .map(([key, reason]) => `${join(path, 'metadata.annotations')}[${key}]: ${reason}`),
    ...itemsOf(spec.volumes).flatMap((volume, i) => pluginWarnings(`${pathOf('volumes')}[${i}]`, volume)),
    ...itemsOf(spec.volumes).flatMap(overlapWarnings),
    ...repeated(pathOf('hostAliases'), itemsOf(spec.hostAliases), 'ip'),
    ...repeated(pathOf('imagePullSecrets'), itemsOf(spec.imagePullSecrets), 'name'),
    ...itemsOf(spec.imagePullSecrets).flatMap(({ name }, i) =>
      textOf(name) === '' ? [`${pathOf('imagePullSecrets')}[${i}].name: invalid empty name ""`] : [],
    ),
    ...byteFields.flatMap(name => byteWarnings(`${pathOf('overhead')}[${name}]`, fieldsOf(spec.overhead)[name])),
    ...profileWarnings(join(path, 'metadata.annotations'), annotations, spec, containers, path !== ''),
    ...containers.flatMap(containerWarnings),
    ...portWarnings(containers),
    ...portNameWarnings(containers),
    ...(intOf(spec.terminationGracePeriodSeconds) < 0
      ? [`${pathOf('terminationGracePeriodSeconds')}: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...affinityWarnings(pathOf, spec),
    ...textsOf(fieldsOf(spec.dnsConfig).nameservers).flatMap((ip, i) => addressWarnings(`${pathOf('dnsConfig')}.nameservers[${i}]`, ip)),
    ...itemsOf(spec.hostAliases).flatMap(({ ip }, i) => addressWarnings(`${pathOf('hostAliases')}[${i}].ip`, ip)),
  ]
}

type PathOf = (field: string) => string
const noSelector = 'a null labelSelector results in matching no pod'

function placementWarnings(pathOf: PathOf, spec: Fields): string[] {
  const nodes = fieldsOf(fieldsOf(spec.affinity).nodeAffinity)
  const required = pathOf('affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms')
  const preferred = pathOf('affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution')
  return [
    ...Object.keys(fieldsOf(spec.nodeSelector)).flatMap(key => {
      const reason = deprecatedNodeLabel(key)
      return reason ? [`${pathOf('nodeSelector')}[${key}]: ${reason}`] : []
    }),
    ...itemsOf(fieldsOf(nodes.requiredDuringSchedulingIgnoredDuringExecution).nodeSelectorTerms).flatMap((term, i) =>
      nodeTermWarnings(`${required}[${i}]`, term, false),
    ),
    ...itemsOf(nodes.preferredDuringSchedulingIgnoredDuringExecution).flatMap(({ preference }, i) =>
      nodeTermWarnings(`${preferred}[${i}].preference`, fieldsOf(preference), true),
    ),
    ...itemsOf(spec.topologySpreadConstraints).flatMap(({ topologyKey, labelSelector }, i) => {
      const path = `${pathOf('topologySpreadConstraints')}[${i}]`
      const reason = deprecatedNodeLabel(topologyKey)
      const warnings = reason ? [`${path}.topologyKey: ${topologyKey} is ${reason}`] : []
      if (labelSelector === undefined) warnings.push(`${path}.labelSelector: ${noSelector}`)
      return warnings
    }),
  ]
}

function affinityWarnings(pathOf: PathOf, spec: Fields): string[] {
  return ['podAffinity', 'podAntiAffinity'].flatMap(kind => {
    const affinity = fieldsOf(fieldsOf(spec.affinity)[kind])
    const path = pathOf(`affinity.${kind}`)
    const required = itemsOf(affinity.requiredDuringSchedulingIgnoredDuringExecution).flatMap(({ labelSelector }, i) =>
      labelSelector === undefined ? [`${path}.requiredDuringSchedulingIgnoredDuringExecution[${i}].labelSelector: ${noSelector}`] : [],
    )
    const preferred = itemsOf(affinity.preferredDuringSchedulingIgnoredDuringExecution).flatMap(({ podAffinityTerm }, i) =>
      fieldsOf(podAffinityTerm).labelSelector === undefined
        ? [`${path}.preferredDuringSchedulingIgnoredDuringExecution[${i}].podAffinityTerm.labelSelector: ${noSelector}`]
        : [],
    )
    return [...required, ...preferred]
  })
}

const deprecatedPodPlugins = {
  ...deprecatedVolumePlugins,
  gitRepo: 'deprecated in v1.11, and disabled by default in v1.33+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
} as const

function pluginWarnings(path: string, volume: Fields): string[] {
  const warnings = Object.entries(deprecatedPodPlugins)
    .filter(([plugin]) => volume[plugin] !== undefined)
    .map(([plugin, reason]) => `${path}.${plugin}: ${reason}`)
  const template = fieldsOf(fieldsOf(volume.ephemeral).volumeClaimTemplate)
  return [...warnings, ...claimSpecWarnings(`${path}.ephemeral.volumeClaimTemplate.spec`, fieldsOf(template.spec))]
}

function repeated(path: string, items: readonly Fields[], field: string): string[] {
  const seen = new Set<string>()
  return items.flatMap((item, i) => {
    const value = textOf(item[field])
    if (seen.has(value)) return [`${path}[${i}].${field}: duplicate ${field} ${JSON.stringify(value)}`]
    seen.add(value)
    return []
  })
}

const byteFields = ['memory', 'ephemeral-storage']

/** Annotations that the fields for seccomp and AppArmor replaced. */
function profileWarnings(path: string, annotations: Fields, spec: Fields, containers: readonly Located[], isTemplate: boolean): string[] {
  const warnings: string[] = []
  const seccomp = 'non-functional in v1.27+; use the "seccompProfile" field instead'
  const ofPod = fieldsOf(spec.securityContext)
  const podKey = 'seccomp.security.alpha.kubernetes.io/pod'
  if (ofPod.seccompProfile === undefined && annotations[podKey] !== undefined) warnings.push(`${path}[${podKey}]: ${seccomp}`)
  for (const { container } of containers) {
    const { seccompProfile, appArmorProfile } = fieldsOf(container.securityContext)
    const seccompKey = `container.seccomp.security.alpha.kubernetes.io/${container.name}`
    if (seccompProfile === undefined && annotations[seccompKey] !== undefined) warnings.push(`${path}[${seccompKey}]: ${seccomp}`)
    const armorKey = `container.apparmor.security.beta.kubernetes.io/${container.name}`
    const armor = annotations[armorKey]
    if (!isTemplate || appArmorProfile !== undefined || armor === undefined) continue
    if (ofPod.appArmorProfile !== undefined && equalJson(ofPod.appArmorProfile, armorProfile(textOf(armor)))) continue
    warnings.push(`${path}[${armorKey}]: deprecated since v1.30; use the "appArmorProfile" field instead`)
  }
  return warnings
}

function armorProfile(annotation: string): Fields {
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' }
  if (annotation === 'unconfined') return { type: 'Unconfined' }
  return { type: 'Localhost', localhostProfile: annotation.replace(/^localhost\//, '') }
}

function containerWarnings({ path, container }: Located): string[] {
  const { limits, requests } = fieldsOf(container.resources)
  const bytes = byteFields.flatMap(name => [
    ...byteWarnings(`${path}.resources.limits[${name}]`, fieldsOf(limits)[name]),
    ...byteWarnings(`${path}.resources.requests[${name}]`, fieldsOf(requests)[name]),
  ])
  const seen = new Set<string>()
  const hidden = itemsOf(container.env).flatMap(({ name, value, valueFrom }, i) => {
    const variable = textOf(name)
    const reference = `$(${variable})`
    const isRepeated = seen.has(variable)
    seen.add(variable)
    // A value that refers to the previous one is intended.
    if (!isRepeated || (valueFrom === undefined && textOf(value).includes(reference) && value !== reference)) return []
    return [`${path}.env[${i}]: hides previous definition of ${JSON.stringify(variable)}, which may be dropped when using apply`]
  })
  return [...bytes, ...hidden]
}

function portsOf(containers: readonly Located[]): { path: string; port: Fields }[] {
  return containers.flatMap(({ path, container }) => itemsOf(container.ports).map((port, i) => ({ path: `${path}.ports[${i}]`, port })))
}

function portWarnings(containers: readonly Located[]): string[] {
  const warnings: string[] = []
  const byNumber = new Map<string, { path: string; port: Fields }[]>()
  for (const one of portsOf(containers)) {
    const { path, port } = one
    const hostIp = textOf(port.hostIP)
    if (hostIp !== '' && intOf(port.hostPort) === 0) warnings.push(`${path}: hostIP set without hostPort: ${formatPort(port)}`)
    const number = `${port.containerPort}/${port.protocol}`
    const others = byNumber.get(number) ?? []
    for (const { path: otherPath, port: other } of others) {
      const [hostPort, otherPort, otherIp] = [intOf(port.hostPort), intOf(other.hostPort), textOf(other.hostIP)]
      if (hostIp === otherIp && hostPort === otherPort) warnings.push(`${path}: duplicate port definition with ${otherPath}`)
      else if (hostPort === 0 || otherPort === 0) warnings.push(`${path}: overlapping port definition with ${otherPath}`)
      else if (hostPort === otherPort && (hostIp === '') !== (otherIp === '')) {
        warnings.push(`${path}: dangerously ambiguous port definition with ${otherPath}`)
      }
    }
    byNumber.set(number, [...others, one])
  }
  return warnings
}

/** As Go prints its struct. */
function formatPort({ name, hostPort, containerPort, protocol, hostIP }: Fields): string {
  return `{Name:${textOf(name)} HostPort:${intOf(hostPort)} ContainerPort:${intOf(containerPort)} Protocol:${textOf(protocol)} HostIP:${textOf(hostIP)}}`
}

function portNameWarnings(containers: readonly Located[]): string[] {
  const byName = new Map<string, string>()
  return portsOf(containers).flatMap(({ path, port }) => {
    const name = textOf(port.name)
    if (name === '') return []
    const other = byName.get(name)
    if (other !== undefined) {
      const effect = `services and probes that select ports by name will use ${other}`
      return [`${path}: duplicate port name ${JSON.stringify(name)} with ${other}, ${effect}`]
    }
    byName.set(name, path)
    return []
  })
}
