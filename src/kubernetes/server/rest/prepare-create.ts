import { randomUUID } from 'node:crypto'
import {
  badRequest,
  invalidValue,
  type KubeObject,
  nameErrors,
  type ObjectMeta,
  requiredValue,
  rfc3339,
  type StatusCause,
} from '../../object/index.ts'
import { randomName } from '../../util/index.ts'
import type { Kind } from '../registry/index.ts'
import type { Decoded } from './decode.ts'
import { checkNamespacedName, type NamespacedName, userMetadata } from './metadata.ts'
import { type FieldOwnership, trackManagedFields } from './track-managed-fields.ts'
import { addFinalizerWarnings, validateObject, validationError, withDefaults } from './validate-object.ts'
import type { WriteOptions } from './write-options.ts'

/**
 * The object that a create stores: the sent object with the server's metadata and defaults, without a status.
 * @param url `name` is empty when the name comes from the body.
 * @throws {StatusError} BadRequest or Invalid.
 */
export function prepareCreate(
  kind: Kind,
  { object: decoded, sent }: Decoded,
  url: NamespacedName,
  ownership: FieldOwnership,
  options: WriteOptions,
): KubeObject {
  if (sent.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
  checkNamespacedName(kind, sent, url)
  const { generateName } = sent
  const name = sent.name ?? (url.name || (generateName ? randomName(generateName) : ''))
  const metadata: ObjectMeta = {
    name,
    ...(generateName && { generateName }),
    ...(kind.namespaced && { namespace: url.namespace }),
    uid: randomUUID(),
    resourceVersion: '',
    ...(kind.hasGeneration ? { generation: 1 } : sent.generation && { generation: sent.generation }),
    creationTimestamp: rfc3339(options.nowMs),
    ...userMetadata(sent),
  }
  if (ownership === 'applied' && sent.managedFields) metadata.managedFields = sent.managedFields
  let object: KubeObject = { ...decoded, metadata }
  if (kind.hasStatus) delete object.status
  object = withDefaults(kind, object)
  object.metadata = metadata
  kind.strategy.prepareForWrite?.(object, undefined)
  // Generated fields have no owner.
  const owned = kind.strategy.prepareForCreate ? { ...object, metadata: { ...object.metadata } } : object
  kind.strategy.prepareForCreate?.(object)
  const causes = generateName ? prefixCauses(kind, generateName) : []
  causes.push(...nameCauses(kind, metadata))
  causes.push(...validateObject(kind, object, undefined, options))
  if (causes.length > 0) throw validationError(kind, name || generateName || '', causes)
  addFinalizerWarnings(kind, object, undefined, options)
  if (ownership === 'tracked') {
    trackManagedFields(kind, undefined, owned, '', options)
    if (owned !== object) object.metadata.managedFields = owned.metadata.managedFields
  }
  if (kind.strategy.warnings) options.warnings.push(...kind.strategy.warnings(object, undefined))
  return object
}

function nameCauses(kind: Kind, metadata: ObjectMeta): StatusCause[] {
  if (!metadata.name) return [requiredValue('metadata.name', 'name or generateName is required')]
  return nameErrors(metadata.name, kind.nameRule).map(why => invalidValue('metadata.name', metadata.name, why))
}

// The random suffix follows, so the prefix may end in a character that a name may not end in.
function prefixCauses(kind: Kind, generateName: string): StatusCause[] {
  const prefix = generateName.endsWith('-') ? `${generateName.slice(0, -1)}a` : generateName
  return nameErrors(prefix, kind.nameRule).map(why => invalidValue('metadata.generateName', generateName, why))
}
