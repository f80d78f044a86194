import type { KubeObject } from '../../kube/index.ts'
import { age } from './human-duration.ts'
import type { Column } from './kind.ts'

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace. Cannot be updated.',
  priority: 0,
  read: object => object.metadata.name,
}

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'How long ago the object was created.',
  priority: 0,
  read: (object, nowMs) => age(object.metadata.creationTimestamp, nowMs),
}

export function column(name: string, description: string, read: (object: KubeObject, nowMs: number) => unknown, priority = 0): Column {
  return { name, type: 'string', description, priority, read }
}
