import { type StatusCause, StatusError } from '../../kube/index.ts'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** What every write may say in its query. */
export type WriteOptions = {
  readonly dryRun: boolean
  /** Who owns the fields that this write sets: the query's fieldManager, else the first word of the User-Agent. */
  readonly manager: string
  /** True when the query named the manager itself, which server-side apply insists on. */
  readonly isManagerGiven: boolean
  readonly fieldValidation: FieldValidation
  readonly force: boolean
  readonly nowMs: number
  /** Texts for `Warning: 299` headers. */
  readonly warnings: string[]
}

const maxManagerLength = 128

/** @throws {StatusError} BadRequest or Invalid for values that Kubernetes does not know. */
export function readWriteOptions(query: URLSearchParams | undefined, userAgent: string | undefined, nowMs: number): WriteOptions {
  const manager = query?.get('fieldManager') ?? ''
  const dryRun = query?.getAll('dryRun') ?? []
  if (dryRun.some(value => value !== 'All')) {
    throw invalidOption('dryRun', `Unsupported value: ${JSON.stringify(dryRun.find(value => value !== 'All'))}: supported values: "All"`)
  }
  const fieldValidation = query?.get('fieldValidation') || 'Warn'
  if (fieldValidation !== 'Strict' && fieldValidation !== 'Warn' && fieldValidation !== 'Ignore') {
    throw invalidOption(
      'fieldValidation',
      `Unsupported value: ${JSON.stringify(fieldValidation)}: supported values: "Ignore", "Strict", "Warn"`,
    )
  }
  if (manager.length > maxManagerLength) throw invalidOption('fieldManager', `Too long: may not be more than ${maxManagerLength} bytes`)
  return {
    dryRun: dryRun.length > 0,
    manager: manager || managerFrom(userAgent),
    isManagerGiven: manager !== '',
    fieldValidation,
    force: readBoolean(query, 'force'),
    nowMs,
    warnings: [],
  }
}

/** Reads a flag as Kubernetes does: absent, `0` and `false` are false, whatever else is true. */
export function readBoolean(query: URLSearchParams | undefined, name: string): boolean {
  const value = query?.get(name)
  return value !== undefined && value !== null && value !== '0' && value.toLowerCase() !== 'false'
}

function managerFrom(userAgent: string | undefined): string {
  if (!userAgent) return 'unknown'
  const slash = userAgent.indexOf('/')
  return (slash < 0 ? userAgent : userAgent.slice(0, slash)).slice(0, maxManagerLength) || 'unknown'
}

function invalidOption(field: string, message: string): StatusError {
  const cause: StatusCause = { reason: 'FieldValueNotSupported', message, field }
  return new StatusError('Invalid', `options is invalid: ${field}: ${message}`, { details: { causes: [cause] } })
}
