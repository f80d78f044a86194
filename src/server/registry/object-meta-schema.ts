import type { StructuralSchema } from '../../kube/index.ts'

const text = (description: string): StructuralSchema => ({ type: 'string', description })
const texts = (description: string): StructuralSchema => ({ type: 'object', description, additionalProperties: { type: 'string' } })
const time = (description: string): StructuralSchema => ({ type: 'string', format: 'date-time', description })

/** The metadata of every object: what is known is kept, for clients to read in `kubectl explain`. */
export const objectMetaSchema: StructuralSchema = {
  type: 'object',
  description: 'ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.',
  properties: {
    annotations: texts(
      'Annotations is an unstructured key value map that external tools may set to store and retrieve arbitrary metadata.',
    ),
    creationTimestamp: time('CreationTimestamp is the server time when this object was created. Read-only.'),
    deletionGracePeriodSeconds: {
      type: 'integer',
      format: 'int64',
      description: 'Number of seconds allowed for this object to gracefully terminate. Read-only.',
    },
    deletionTimestamp: time(
      'DeletionTimestamp is when deletion was requested; the object goes away once its finalizers are gone. Read-only.',
    ),
    finalizers: {
      type: 'array',
      description: 'Must be empty before the object is deleted from the registry. Each entry names the component that will remove it.',
      items: { type: 'string' },
      'x-kubernetes-list-type': 'set',
    },
    generateName: text('GenerateName is an optional prefix, used by the server to generate a unique name only if name is not given.'),
    generation: {
      type: 'integer',
      format: 'int64',
      description: 'A sequence number of the desired state. Read-only.',
    },
    labels: texts('Map of string keys and values that can be used to organize and categorize (scope and select) objects.'),
    managedFields: {
      type: 'array',
      description: 'ManagedFields maps workflow-id and version to the set of fields that are managed by that workflow.',
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        description: 'ManagedFieldsEntry is one workflow and the fields it manages.',
        properties: {
          apiVersion: text('APIVersion is the version of the resource that this field set applies to.'),
          fieldsType: text('FieldsType is the discriminator for the different fields format and version.'),
          fieldsV1: { type: 'object', description: 'FieldsV1 holds the fields.', 'x-kubernetes-preserve-unknown-fields': true },
          manager: text('Manager is an identifier of the workflow managing these fields.'),
          operation: text('Operation is the type of operation which lead to this entry being created: Apply or Update.'),
          subresource: text('Subresource is the name of the subresource used to update that object, or empty.'),
          time: time('Time is the timestamp of when the entry was added or last changed.'),
        },
      },
    },
    name: text('Name must be unique within a namespace. Cannot be updated.'),
    namespace: text('Namespace defines the space within which each name must be unique. Cannot be updated.'),
    ownerReferences: {
      type: 'array',
      description: 'List of objects depended by this object. If all of them have been deleted, this object will be garbage collected.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      items: {
        type: 'object',
        description: 'OwnerReference contains enough information to let you identify an owning object.',
        required: ['apiVersion', 'kind', 'name', 'uid'],
        'x-kubernetes-map-type': 'atomic',
        properties: {
          apiVersion: text('API version of the referent.'),
          blockOwnerDeletion: {
            type: 'boolean',
            description: 'If true, the owner waits for this object when it is deleted in the foreground.',
          },
          controller: { type: 'boolean', description: 'If true, this reference points to the managing controller.' },
          kind: text('Kind of the referent.'),
          name: text('Name of the referent.'),
          uid: text('UID of the referent.'),
        },
      },
    },
    resourceVersion: text('An opaque value of the version of this object, used for optimistic concurrency and watches. Read-only.'),
    selfLink: text('Deprecated: always empty.'),
    uid: text('UID is the unique in time and space value for this object. Read-only.'),
  },
}
