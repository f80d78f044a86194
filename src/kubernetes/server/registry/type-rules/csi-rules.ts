import { duplicateValue, forbiddenField, invalidValue, requiredValue, type StatusCause, unsupportedValue } from '../../../object/index.ts'
import { fieldsOf, intOf, invalidName, itemsOf, textOf, textsOf } from './checks.ts'
import type { Fields, RuleTable, ValidationContext } from './type-rules.ts'

const minTokenSeconds = 600
const maxTokenSeconds = 2 ** 32
const maxDriverNameLength = 63

/** Rules of the types of CSI drivers in storage.k8s.io. */
export const csiRules: RuleTable = {
  'storage.v1.CSIDriverSpec': {
    defaults: {
      attachRequired: true,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      podInfoOnMount: false,
      requiresRepublish: false,
      seLinuxMount: false,
      storageCapacity: false,
      volumeLifecycleModes: ['Persistent'],
    },
    validate: driverErrors,
  },
  'storage.v1.CSINodeSpec': { validate: nodeErrors },
  'storage.v1.VolumeAttachmentSpec': { validate: attachmentErrors },
  'storage.v1.CSIStorageCapacity': {
    validate: ({ storageClassName }) => invalidName('storageClassName', textOf(storageClassName), 'dns1123Subdomain'),
  },
}

const policies = ['File', 'None', 'ReadWriteOnceWithFSType']
const modes = ['Persistent', 'Ephemeral']

function driverErrors({ fsGroupPolicy, tokenRequests, volumeLifecycleModes }: Fields, { path }: ValidationContext): StatusCause[] {
  const causes = policies.includes(textOf(fsGroupPolicy)) ? [] : [unsupportedValue(`${path}.fsGroupPolicy`, fsGroupPolicy, policies)]
  const audiences = new Set<string>()
  itemsOf(tokenRequests).forEach(({ audience, expirationSeconds }, index) => {
    const requestPath = `${path}.tokenRequests[${index}]`
    if (audiences.has(textOf(audience))) causes.push(duplicateValue(`${requestPath}.audience`, textOf(audience)))
    audiences.add(textOf(audience))
    if (expirationSeconds === undefined) return
    const seconds = intOf(expirationSeconds)
    const reject = (reason: string) => causes.push(invalidValue(`${requestPath}.expirationSeconds`, seconds, reason))
    if (seconds < minTokenSeconds) reject('may not specify a duration less than 10 minutes')
    else if (seconds > maxTokenSeconds) reject('may not specify a duration larger than 2^32 seconds')
  })
  for (const mode of textsOf(volumeLifecycleModes)) {
    if (!modes.includes(mode)) causes.push(unsupportedValue(`${path}.volumeLifecycleModes`, mode, modes))
  }
  return causes
}

function nodeErrors({ drivers }: Fields, { path }: ValidationContext): StatusCause[] {
  const names = new Set<string>()
  return itemsOf(drivers).flatMap(({ name, nodeID }, index) => {
    const driverPath = `${path}.drivers[${index}]`
    const causes: StatusCause[] = []
    if (textOf(name) === '') causes.push(requiredValue(`${driverPath}.name`))
    else if (textOf(name).length > maxDriverNameLength) {
      causes.push(invalidValue(`${driverPath}.name`, name, `must be no more than ${maxDriverNameLength} characters`))
    }
    if (textOf(nodeID) === '') causes.push(requiredValue(`${driverPath}.nodeID`))
    if (names.has(textOf(name))) causes.push(duplicateValue(`${driverPath}.name`, textOf(name)))
    names.add(textOf(name))
    return causes
  })
}

function attachmentErrors({ attacher, nodeName, source }: Fields, { path }: ValidationContext): StatusCause[] {
  const causes = textOf(attacher) === '' ? [requiredValue(`${path}.attacher`)] : []
  causes.push(...invalidName(`${path}.nodeName`, textOf(nodeName), 'dns1123Subdomain'))
  const { inlineVolumeSpec, persistentVolumeName } = fieldsOf(source)
  const both = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName'
  if (inlineVolumeSpec === undefined && textOf(persistentVolumeName) === '') causes.push(requiredValue(`${path}.source`, both))
  if (inlineVolumeSpec !== undefined && textOf(persistentVolumeName) !== '') causes.push(forbiddenField(`${path}.source`, both))
  return causes
}
