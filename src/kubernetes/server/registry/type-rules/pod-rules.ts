import { duplicateValue, invalidValue, type KubeObject, notFoundValue, requiredValue, type StatusCause } from '../../../object/index.ts'
import {
  duplicates,
  fieldsOf,
  inRange,
  intOf,
  invalidName,
  itemsOf,
  labelPairs,
  optionalName,
  pathBelow,
  textOf,
  textsOf,
} from './checks.ts'
import { ipErrors } from './ip-address.ts'
import type { Fields, RuleTable, ValidationContext } from './type-rules.ts'
import { volumeSources } from './volume-rules.ts'

/** The container lists of a PodSpec, in the order in which Kubernetes validates them. */
const containerLists = ['containers', 'initContainers', 'ephemeralContainers'] as const

/** The volumes that the StatefulSet controller adds to its Pods, one for each claim template. */
function claimedVolumes({ kind, spec }: KubeObject): Fields[] {
  if (kind !== 'StatefulSet') return []
  const claims = itemsOf(fieldsOf(spec).volumeClaimTemplates)
  return claims.map(({ metadata }) => ({ name: fieldsOf(metadata).name, persistentVolumeClaim: {} }))
}

function podSpecErrors(spec: Fields, { path, object }: ValidationContext): StatusCause[] {
  const volumes = itemsOf(spec.volumes)
  const causes: StatusCause[] = [
    ...duplicates(`${path}.volumes`, volumes, 'name'),
    ...volumes.flatMap(({ name }, index) => volumeName(`${path}.volumes[${index}].name`, textOf(name))),
  ]
  const names = new Set<string>()
  const mountable = [...volumes, ...claimedVolumes(object)]
  for (const field of containerLists) {
    const containers = itemsOf(spec[field])
    causes.push(...duplicates(`${path}.${field}`, containers, 'name', names))
    containers.forEach((container, index) => {
      causes.push(...mountErrors(`${path}.${field}[${index}]`, container, mountable))
    })
    if (field !== 'ephemeralContainers') causes.push(...hostPortErrors(`${path}.${field}`, containers))
  }
  causes.push(...optionalName(`${path}.serviceAccountName`, spec.serviceAccountName, 'dns1123Subdomain'))
  causes.push(...optionalName(`${path}.nodeName`, spec.nodeName, 'dns1123Subdomain'))
  causes.push(...optionalName(`${path}.priorityClassName`, spec.priorityClassName, 'dns1123Subdomain'))
  causes.push(...optionalName(`${path}.runtimeClassName`, spec.runtimeClassName, 'dns1123Subdomain'))
  causes.push(...optionalName(`${path}.hostname`, spec.hostname, 'dns1123Label'))
  causes.push(...optionalName(`${path}.subdomain`, spec.subdomain, 'dns1123Label'))
  causes.push(...labelPairs(`${path}.nodeSelector`, spec.nodeSelector))
  if (spec.activeDeadlineSeconds !== undefined)
    causes.push(...inRange(`${path}.activeDeadlineSeconds`, spec.activeDeadlineSeconds, 1, 2_147_483_647))
  itemsOf(spec.hostAliases).forEach(({ ip, hostnames }, index) => {
    const aliasPath = `${path}.hostAliases[${index}]`
    causes.push(...ipErrors(textOf(ip), `${aliasPath}.ip`))
    textsOf(hostnames).forEach((name, nameIndex) => {
      causes.push(...invalidName(`${aliasPath}.hostnames[${nameIndex}]`, name, 'dns1123Subdomain'))
    })
  })
  textsOf(fieldsOf(spec.dnsConfig).nameservers).forEach((server, index) => {
    causes.push(...ipErrors(server, `${path}.dnsConfig.nameservers[${index}]`))
  })
  if (spec.dnsPolicy === 'None' && textsOf(fieldsOf(spec.dnsConfig).nameservers).length === 0) {
    causes.push(requiredValue(`${path}.dnsConfig.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None'))
  }
  return causes
}

function volumeName(path: string, name: string): StatusCause[] {
  return name === '' ? [requiredValue(path)] : invalidName(path, name, 'dns1123Label')
}

// Kubernetes omits the index in some of these paths.
function mountErrors(path: string, container: Fields, volumes: readonly Fields[]): StatusCause[] {
  const mounts = itemsOf(container.volumeMounts)
  const volumeNames = new Set(volumes.map(volume => textOf(volume.name)))
  const mountPaths = new Set<string>()
  const causes = mounts.flatMap((mount, index) => {
    const itemPath = `${path}.volumeMounts[${index}]`
    const mountCauses: StatusCause[] = []
    const [name, mountPath] = [textOf(mount.name), textOf(mount.mountPath)]
    if (name === '') mountCauses.push(requiredValue(`${itemPath}.name`))
    if (!volumeNames.has(name)) mountCauses.push(notFoundValue(`${itemPath}.name`, name))
    if (mountPath === '') mountCauses.push(requiredValue(`${itemPath}.mountPath`))
    if (mountPaths.has(mountPath)) mountCauses.push(invalidValue(`${itemPath}.mountPath`, mountPath, 'must be unique'))
    mountPaths.add(mountPath)
    for (const field of ['subPath', 'subPathExpr']) {
      if (textOf(mount[field]) !== '') mountCauses.push(...pathBelow(`${path}.volumeMounts.${field}`, textOf(mount[field])))
    }
    if (textOf(mount.subPath) !== '' && textOf(mount.subPathExpr) !== '') {
      mountCauses.push(invalidValue(`${itemPath}.subPathExpr`, mount.subPathExpr, 'subPathExpr and subPath are mutually exclusive'))
    }
    return mountCauses
  })
  const claims = new Set(
    volumes
      .filter(volume => volumeSources(volume).some(source => source === 'persistentVolumeClaim' || source === 'ephemeral'))
      .map(volume => textOf(volume.name)),
  )
  itemsOf(container.volumeDevices).forEach(({ name, devicePath }, index) => {
    const itemPath = `${path}.volumeDevices[${index}]`
    if (textOf(name) === '') causes.push(requiredValue(`${itemPath}.name`))
    if (!volumeNames.has(textOf(name))) causes.push(notFoundValue(`${itemPath}.name`, textOf(name)))
    else if (!claims.has(textOf(name))) {
      const reason = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode'
      causes.push(invalidValue(`${itemPath}.name`, textOf(name), reason))
    }
    if (textOf(devicePath) === '') causes.push(requiredValue(`${itemPath}.devicePath`))
  })
  return causes
}

function hostPortErrors(path: string, containers: readonly Fields[]): StatusCause[] {
  const used = new Set<string>()
  return containers.flatMap((container, index) =>
    itemsOf(container.ports).flatMap(({ protocol, hostIP, hostPort }, portIndex) => {
      if (intOf(hostPort) === 0) return []
      const id = `${textOf(protocol)}/${textOf(hostIP)}/${hostPort}`
      if (used.has(id)) return [duplicateValue(`${path}[${index}].ports[${portIndex}].hostPort`, id)]
      used.add(id)
      return []
    }),
  )
}

/** Rules of PodSpec, which is the same in a Pod and in every template. */
export const podRules: RuleTable = {
  'core.v1.PodSpec': {
    defaults: {
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      schedulerName: 'default-scheduler',
    },
    setDefaults: spec => {
      // The deprecated and the current name of one field.
      const account = spec.serviceAccountName ?? spec.serviceAccount
      if (account === undefined) return
      spec.serviceAccountName = account
      spec.serviceAccount = account
    },
    required: { containers: '' },
    enumOrder: {
      dnsPolicy: ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'],
      restartPolicy: ['Always', 'OnFailure', 'Never'],
    },
    validate: podSpecErrors,
  },
  // As in PodSpec, for volumes that a PersistentVolume and a claim template do not have.
  'core.v1.EphemeralVolumeSource': { required: { volumeClaimTemplate: '' } },
  'core.v1.PodTemplateSpec': {
    // Kubernetes reports these labels as fields of the template itself.
    validate: ({ metadata }, { path }) => labelPairs(`${path}.labels`, fieldsOf(metadata).labels),
  },
}
