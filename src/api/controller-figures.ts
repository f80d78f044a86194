import type { KubeObject } from '../kubernetes/object/index.ts'
import { annotations, controllerLeaseName, stackShardsName } from './names.ts'

/** What a process publishes about one of its controllers. */
export type ControllerFigures = {
  readonly name: string
  /** Reconciles since the process started. */
  readonly reconciles: number
  readonly errors: number
  readonly queued: number
  /** Half of the reconciles, and 99 of 100, took no longer. Undefined: there were none, or some took longer than is measured. */
  readonly p50Ms?: number
  readonly p99Ms?: number
}

const maxControllers = 100
/** Without characters that are invisible or reverse text. */
const controllerName = /^[\w .-]{1,253}$/
/** Of the leader, and of the slots of the ring. */
const controllerLease = new RegExp(`^(${controllerLeaseName}|${stackShardsName}-\\d{1,2})$`)
const maxTextLength = 64 * 1024
const required = ['reconciles', 'errors', 'queued'] as const
const optional = ['p50Ms', 'p99Ms'] as const

/** The annotation that has them. */
export const publishControllerFigures = (all: readonly ControllerFigures[]): Readonly<Record<string, string>> => ({
  [annotations.controllerFigures]: JSON.stringify(all.slice(0, maxControllers)),
})

/** Of the process that holds a Lease of the controllers. Other Leases have none, because each worker may write its own. What is not valid is left out. */
export function controllerFiguresOf({ metadata }: Pick<KubeObject, 'metadata'>): readonly ControllerFigures[] {
  const text = metadata.annotations?.[annotations.controllerFigures]
  if (text === undefined || text.length > maxTextLength || !controllerLease.test(metadata.name)) return []
  try {
    const all: unknown = JSON.parse(text)
    return Array.isArray(all) ? all.slice(0, maxControllers).flatMap(each => parseFigures(Object(each)) ?? []) : []
  } catch {
    return []
  }
}

function parseFigures(value: Readonly<Record<string, unknown>>): ControllerFigures | undefined {
  const { name } = value
  if (typeof name !== 'string' || !controllerName.test(name)) return undefined
  if (!required.every(field => isCount(value[field]) && Number.isInteger(value[field]))) return undefined
  const fields = [...required, ...optional.filter(field => isCount(value[field]))]
  return { name, ...Object.fromEntries(fields.map(field => [field, value[field]])) } as ControllerFigures
}

const isCount = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
