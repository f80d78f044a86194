import { isJsonObject, type KubeObject, type LabelSelectorObject } from '../../../object/index.ts'
import type { PrinterColumn } from '../printer-columns.ts'
import { column } from '../printer-columns.ts'
import { formatSortedLabelSelector, valueAt } from '../scale.ts'

type Container = { name?: string; image?: string }

/** A column of integers; a missing number is 0. */
export function numberColumn(name: string, description: string, path: string): PrinterColumn {
  return { ...column(name, description, object => numberAt(object, path)), type: 'integer' }
}

/** The number at a path such as `status.replicas`; 0 if it is missing. */
export function numberAt(object: KubeObject, path: string): number {
  const value = valueAtPath(object, path)
  return typeof value === 'number' ? value : 0
}

/** The text at a path such as `spec.schedule`; `<none>` if it is missing. */
export function textAt(object: KubeObject, path: string, absent = '<none>'): string {
  const value = valueAtPath(object, path)
  return value === undefined || value === null ? absent : String(value)
}

export function valueAtPath(object: KubeObject, path: string): unknown {
  return valueAt(object, path.split('.'))
}

/** A label selector in kubectl's notation. */
export function selectorAt(object: KubeObject, path: string): string {
  const selector = valueAtPath(object, path)
  return (isJsonObject(selector) && formatSortedLabelSelector(selector as LabelSelectorObject)) || '<none>'
}

/** The columns of `kubectl get -o wide` for the containers of a Pod template. */
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

/** A map of labels as `a=b,c=d`; `<none>` if it is empty. */
export function formatLabels(labels: unknown): string {
  if (!isJsonObject(labels)) return '<none>'
  const texts = Object.keys(labels)
    .sort()
    .map(key => `${key}=${String(labels[key])}`)
  return texts.join(',') || '<none>'
}

/** At most three items of a list and the number of the others; `<unset>` for an empty list. */
export function firstThree(list: readonly string[]): string {
  if (list.length === 0) return '<unset>'
  return list.slice(0, 3).join(',') + (list.length > 3 ? ` + ${list.length - 3} more...` : '')
}
