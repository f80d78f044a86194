import type { KubeObject } from '../../object/index.ts'
import { formatAge } from './human-duration.ts'

/** A column of `kubectl get`. `read` returns the cell; undefined and null print as `<none>`. */
export type PrinterColumn = {
  name: string
  type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  format?: string
  description: string
  priority: number
  read(object: KubeObject, nowMs: number): unknown
}

/** A field that field selectors may use in addition to metadata.name and metadata.namespace. */
export type SelectableField = { field: string; read(object: KubeObject): string }

export const nameColumn: PrinterColumn = {
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

export const ageColumn: PrinterColumn = {
  name: 'Age',
  type: 'string',
  description: creationTimestampText,
  priority: 0,
  read: (object, nowMs) => formatAge(object.metadata.creationTimestamp, nowMs),
}

export function column(
  name: string,
  description: string,
  read: (object: KubeObject, nowMs: number) => unknown,
  priority = 0,
): PrinterColumn {
  return { name, type: 'string', description, priority, read }
}
