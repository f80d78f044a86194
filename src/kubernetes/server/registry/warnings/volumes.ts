import { type KubeObject, parseQuantity } from '../../../object/index.ts'
import { type Fields, fieldsOf, itemsOf, textOf } from '../type-rules/index.ts'
import { deprecatedNodeLabel, nodeTermWarnings } from './node-labels.ts'

const storageClass = 'volume.beta.kubernetes.io/storage-class'
const deprecatedAnnotations = {
  [storageClass]: 'deprecated since v1.8; use "storageClassName" attribute instead',
  'volume.beta.kubernetes.io/mount-options': 'deprecated since v1.31; use "mountOptions" attribute instead',
}

function annotationWarnings({ metadata: { annotations } }: KubeObject, keys: readonly (keyof typeof deprecatedAnnotations)[]): string[] {
  return keys.filter(key => annotations?.[key] !== undefined).map(key => `metadata.annotations[${key}]: ${deprecatedAnnotations[key]}`)
}

/** Warns about fractions of a byte. Thousandths that add up to whole bytes are accepted. */
export function byteWarnings(path: string, amount: unknown): string[] {
  const text = textOf(amount)
  if (text === '' || (parseQuantity(text).nanos / 1_000_000n) % 1_000n === 0n) return []
  return [`${path}: fractional byte value ${JSON.stringify(text)} is invalid, must be an integer`]
}

export function claimSpecWarnings(path: string, spec: Fields): string[] {
  const { requests, limits } = fieldsOf(spec.resources)
  return [
    ...byteWarnings(`${path}.resources.requests[storage]`, fieldsOf(requests).storage),
    ...byteWarnings(`${path}.resources.limits[storage]`, fieldsOf(limits).storage),
  ]
}

export function claimWarnings(claim: KubeObject): string[] {
  return [...annotationWarnings(claim, [storageClass]), ...claimSpecWarnings('spec', fieldsOf(claim.spec))]
}

export const deprecatedVolumePlugins = {
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  storageOS: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
} as const

export function volumeWarnings(volume: KubeObject): string[] {
  const spec = fieldsOf(volume.spec)
  const warnings = annotationWarnings(volume, [storageClass, 'volume.beta.kubernetes.io/mount-options'])
  if (spec.persistentVolumeReclaimPolicy === 'Recycle') {
    const reason = 'The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.'
    warnings.push(`spec.persistentVolumeReclaimPolicy: ${reason}`)
  }
  const terms = itemsOf(fieldsOf(fieldsOf(spec.nodeAffinity).required).nodeSelectorTerms)
  warnings.push(...terms.flatMap((term, i) => nodeTermWarnings(`spec.nodeAffinity.required.nodeSelectorTerms[${i}]`, term, false)))
  for (const [plugin, reason] of Object.entries(deprecatedVolumePlugins))
    if (spec[plugin] !== undefined) warnings.push(`spec.${plugin}: ${reason}`)
  return warnings
}

export function storageClassWarnings({ allowedTopologies }: KubeObject): string[] {
  return itemsOf(allowedTopologies).flatMap(({ matchLabelExpressions }, i) =>
    itemsOf(matchLabelExpressions).flatMap(({ key }, j) => {
      const reason = deprecatedNodeLabel(key)
      return reason ? [`allowedTopologies[${i}].matchLabelExpressions[${j}].key: ${reason}`] : []
    }),
  )
}
