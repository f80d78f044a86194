import type { KubeObject } from '../kubernetes/object/index.ts'
import { annotations } from './names.ts'

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
const maxNameLength = 253
const maxTextLength = 64 * 1024
const required = ['reconciles', 'errors', 'queued'] as const
const optional = ['p50Ms', 'p99Ms'] as const

/** The annotation that has them. */
export const publishControllerFigures = (all: readonly ControllerFigures[]): Readonly<Record<string, string>> => ({
  [annotations.controllerFigures]: JSON.stringify(all.slice(0, maxControllers)),
})

/** Of the process that holds a Lease. What is not valid is left out: every client that may write Leases can write anything there. */
export function controllerFiguresOf({ metadata }: Pick<KubeObject, 'metadata'>): readonly ControllerFigures[] {
  const text = metadata.annotations?.[annotations.controllerFigures]
  if (text === undefined || text.length > maxTextLength) return []
  try {
    const all: unknown = JSON.parse(text)
    return Array.isArray(all) ? all.slice(0, maxControllers).flatMap(each => parseFigures(Object(each)) ?? []) : []
  } catch {
    return []
  }
}

function parseFigures(value: Readonly<Record<string, unknown>>): ControllerFigures | undefined {
  const { name } = value
  if (typeof name !== 'string' || name === '' || name.length > maxNameLength) return undefined
  if (!required.every(field => isCount(value[field]))) return undefined
  const fields = [...required, ...optional.filter(field => isCount(value[field]))]
  return { name, ...Object.fromEntries(fields.map(field => [field, value[field]])) } as ControllerFigures
}

const isCount = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0
