import type { KubeObject } from '../../object/index.ts'
import { age } from './human-duration.ts'
import type { Column } from './kind.ts'

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description:
    'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names',
  priority: 0,
  read: object => object.metadata.name,
}

export const creationTimestampText = `CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.

Populated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata`

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: creationTimestampText,
  priority: 0,
  read: (object, nowMs) => age(object.metadata.creationTimestamp, nowMs),
}

export function column(name: string, description: string, read: (object: KubeObject, nowMs: number) => unknown, priority = 0): Column {
  return { name, type: 'string', description, priority, read }
}
