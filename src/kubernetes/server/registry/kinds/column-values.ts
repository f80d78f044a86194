import { isJsonObject, type KubeObject, type LabelSelectorObject } from '../../../object/index.ts'
import type { PrinterColumn } from '../printer-columns.ts'
import { column } from '../printer-columns.ts'
import { formatSortedLabelSelector, valueAt } from '../scale.ts'

type Container = { name?: string; image?: string }

/** A column of whole numbers; a number that is not there is 0. */
export function numberColumn(name: string, description: string, path: string): PrinterColumn {
  return { ...column(name, description, object => numberAt(object, path)), type: 'integer' }
}

/** The number at a path such as `status.replicas`; 0 when there is none. */
export function numberAt(object: KubeObject, path: string): number {
  const value = valueAtPath(object, path)
  return typeof value === 'number' ? value : 0
}

/** The text at a path such as `spec.schedule`; `<none>` when there is none. */
export function textAt(object: KubeObject, path: string, absent = '<none>'): string {
  const value = valueAtPath(object, path)
  return value === undefined || value === null ? absent : String(value)
}

export function valueAtPath(object: KubeObject, path: string): unknown {
  return valueAt(object, path.split('.'))
}

/** A label selector as kubectl says it. */
export function selectorAt(object: KubeObject, path: string): string {
  const selector = valueAtPath(object, path)
  return (isJsonObject(selector) && formatSortedLabelSelector(selector as LabelSelectorObject)) || '<none>'
}

/** What `kubectl get -o wide` says of the containers of a Pod template. */
export function containerColumns(path: string): PrinterColumn[] {
  const fieldsOfContainers = (object: KubeObject, field: keyof Container) => {
    const containers = valueAtPath(object, `${path}.spec.containers`)
    return Array.isArray(containers) ? containers.map((container: Container) => container[field] ?? '').join(',') : ''
  }
  return [
    column('Containers', 'Names of each container in the template.', object => fieldsOfContainers(object, 'name'), 1),
    column('Images', 'Images referenced by each container in the template.', object => fieldsOfContainers(object, 'image'), 1),
  ]
}

/** `a=b,c=d` of a map of labels; `<none>` of an empty one. */
export function formatLabels(labels: unknown): string {
  if (!isJsonObject(labels)) return '<none>'
  const texts = Object.keys(labels)
    .sort()
    .map(key => `${key}=${String(labels[key])}`)
  return texts.join(',') || '<none>'
}

/** At most three of a list, and how many more there are; `<unset>` of none. */
export function firstThree(list: readonly string[]): string {
  if (list.length === 0) return '<unset>'
  return list.slice(0, 3).join(',') + (list.length > 3 ? ` + ${list.length - 3} more...` : '')
}
