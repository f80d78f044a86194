import { forbiddenField, invalidValue, parseQuantity, requiredValue, type StatusCause } from '../../../object/index.ts'
import { configKey, fieldsOf, inRange, intOf, itemsOf, noBacksteps, oneOf, optionalName, pathBelow, textOf, textsOf } from './checks.ts'
import { fieldReferenceErrors, isLatest } from './container-rules.ts'
import type { Fields, RuleTable, TypeRules, ValidationContext } from './type-rules.ts'

/** The sources of a volume: every field except its name. */
export function volumeSources(volume: Fields): string[] {
  return Object.keys(volume).filter(field => field !== 'name' && volume[field] !== undefined)
}

const withMode: TypeRules = { defaults: { defaultMode: 420 } }

const modeReason = 'must be a number between 0 and 0777 (octal), both inclusive'

function fileMode(path: string, mode: unknown): StatusCause[] {
  if (mode === undefined) return []
  const number = intOf(mode)
  return number >= 0 && number <= 0o777 ? [] : [invalidValue(path, number, modeReason)]
}

const fileFieldPaths = ['metadata.name', 'metadata.namespace', 'metadata.labels', 'metadata.annotations', 'metadata.uid']

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** Rules of a claim and of a claim template. */
function claimErrors(spec: Fields, { path }: ValidationContext): StatusCause[] {
  const modes = textsOf(spec.accessModes)
  const causes = modes.length === 0 ? [requiredValue(`${path}.accessModes`, 'at least 1 access mode is required')] : []
  if (modes.includes('ReadWriteOncePod') && modes.some(mode => mode !== 'ReadWriteOncePod' && accessModes.includes(mode))) {
    causes.push(forbiddenField(`${path}.accessModes`, 'may not use ReadWriteOncePod with other access modes'))
  }
  const storage = textOf(fieldsOf(fieldsOf(spec.resources).requests).storage)
  const storagePath = `${path}.resources[storage]`
  if (storage === '') causes.push(requiredValue(storagePath))
  else if (parseQuantity(storage).nanos <= 0n) causes.push(invalidValue(storagePath, storage, 'must be greater than zero'))
  return [...causes, ...optionalName(`${path}.storageClassName`, spec.storageClassName, 'dns1123Subdomain')]
}

/** Rules of the types in a volume. */
export const volumeRules: RuleTable = {
  'core.v1.Volume': {
    setDefaults: value => {
      if (volumeSources(value).length === 0) value.emptyDir = {}
    },
    validate: (value, { path }) =>
      volumeSources(value)
        .slice(1)
        .map(field => forbiddenField(`${path}.${field}`, 'may not specify more than 1 volume type')),
  },
  'core.v1.SecretVolumeSource': {
    ...withMode,
    required: { secretName: '' },
    validate: ({ defaultMode }, { path }) => fileMode(`${path}.defaultMode`, defaultMode),
  },
  'core.v1.ConfigMapVolumeSource': {
    ...withMode,
    required: { name: '' },
    validate: ({ defaultMode }, { path }) => fileMode(`${path}.defaultMode`, defaultMode),
  },
  'core.v1.DownwardAPIVolumeSource': {
    ...withMode,
    validate: ({ defaultMode }, { path }) => fileMode(`${path}.defaultMode`, defaultMode),
  },
  'core.v1.ProjectedVolumeSource': {
    ...withMode,
    validate: ({ defaultMode, sources }, { path }) => [
      ...fileMode(`${path}.defaultMode`, defaultMode),
      ...itemsOf(sources).flatMap((source, index) =>
        Object.keys(source)
          .slice(1)
          .map(field => forbiddenField(`${path}.sources[${index}].${field}`, 'may not specify more than 1 volume type')),
      ),
    ],
  },
  'core.v1.SecretProjection': { required: { name: '' } },
  'core.v1.ConfigMapProjection': { required: { name: '' } },
  'core.v1.ServiceAccountTokenProjection': {
    defaults: { expirationSeconds: 3600 },
    required: { path: '' },
    validate: ({ expirationSeconds }, { path }) =>
      intOf(expirationSeconds) < 600
        ? [invalidValue(`${path}.expirationSeconds`, expirationSeconds, 'may not specify a duration less than 10 minutes')]
        : [],
  },
  'core.v1.KeyToPath': {
    validate: ({ key, path: target, mode }, { path }) => [
      ...configKey(`${path}.key`, key),
      ...(textOf(target) === '' ? [requiredValue(`${path}.path`)] : pathBelow(`${path}.path`, textOf(target))),
      ...fileMode(`${path}.mode`, mode),
    ],
  },
  'core.v1.DownwardAPIVolumeFile': {
    validate: ({ path: target, fieldRef, resourceFieldRef, mode }, { path }) => [
      ...(textOf(target) === '' ? [requiredValue(`${path}.path`)] : pathBelow(`${path}.path`, textOf(target))),
      ...(fieldRef === undefined ? [] : fieldReferenceErrors(`${path}.fieldRef`, fieldsOf(fieldRef), fileFieldPaths)),
      ...(fieldRef !== undefined && resourceFieldRef !== undefined
        ? [invalidValue(path, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')]
        : []),
      ...(fieldRef === undefined && resourceFieldRef === undefined
        ? [requiredValue(path, 'one of fieldRef and resourceFieldRef is required')]
        : []),
      ...fileMode(`${path}.mode`, mode),
    ],
  },
  // The claim templates of a StatefulSet have it too.
  'core.v1.PersistentVolumeClaim': {
    setDefaults: value => {
      value.status = { phase: 'Pending', ...fieldsOf(value.status) }
    },
  },
  'core.v1.PersistentVolumeClaimSpec': { defaults: { volumeMode: 'Filesystem' }, validate: claimErrors },
  'core.v1.PersistentVolumeSpec': {
    defaults: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' },
    validate: ({ storageClassName }, { path }) => optionalName(`${path}.storageClassName`, storageClassName, 'dns1123Subdomain'),
  },
  'core.v1.PersistentVolumeClaimVolumeSource': { required: { claimName: '' } },
  'core.v1.HostPathVolumeSource': {
    defaults: { type: '' },
    required: { path: '' },
    validate: ({ path: target, type }, { path }) => [
      ...noBacksteps(`${path}.path`, textOf(target)),
      ...oneOf(`${path}.type`, type, ['', 'BlockDevice', 'CharDevice', 'Directory', 'DirectoryOrCreate', 'File', 'FileOrCreate', 'Socket']),
    ],
    uncheckedEnums: ['type'],
  },
  'core.v1.NFSVolumeSource': {
    required: { server: '', path: '' },
    validate: ({ path: target }, { path }) =>
      textOf(target) === '' || textOf(target).startsWith('/') ? [] : [invalidValue(`${path}.path`, target, 'must be an absolute path')],
  },
  'core.v1.CSIVolumeSource': { required: { driver: '' } },
  'core.v1.LocalVolumeSource': {
    required: { path: '' },
    validate: ({ path: target }, { path }) => noBacksteps(`${path}.path`, textOf(target)),
  },
  'core.v1.EmptyDirVolumeSource': {
    validate: ({ sizeLimit }, { path }) =>
      textOf(sizeLimit).startsWith('-') ? [forbiddenField(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')] : [],
  },
  'core.v1.ImageVolumeSource': {
    setDefaults: value => {
      value.pullPolicy ??= isLatest(textOf(value.reference)) ? 'Always' : 'IfNotPresent'
    },
  },
  'core.v1.GCEPersistentDiskVolumeSource': {
    required: { pdName: '' },
    validate: ({ partition }, { path }) => (partition === undefined ? [] : inRange(`${path}.partition`, partition, 0, 255)),
  },
  'core.v1.AWSElasticBlockStoreVolumeSource': { required: { volumeID: '' } },
  'core.v1.CSIPersistentVolumeSource': {
    required: { driver: '', volumeHandle: '' },
    validate: ({ driver }, { path }) => optionalName(`${path}.driver`, textOf(driver).toLowerCase(), 'dns1123Subdomain'),
  },
}
