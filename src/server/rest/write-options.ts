import { invalidOptions, type StatusCause, tooLong, unsupportedValue } from '../../kube/index.ts'

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
export function readWriteOptions(
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  query: URLSearchParams | undefined,
  userAgent: string | undefined,
  nowMs: number,
): WriteOptions {
  const causes: StatusCause[] = []
  const manager = query?.get('fieldManager') ?? ''
  const dryRun = query?.getAll('dryRun') ?? []
  if (dryRun.some(value => value !== 'All')) {
    causes.push(unsupportedValue('dryRun', dryRun, ['All']))
  }
  const fieldValidation = query?.get('fieldValidation') || 'Warn'
  if (!isFieldValidation(fieldValidation)) {
    causes.push(unsupportedValue('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']))
  }
  if (manager.length > maxManagerLength) causes.push(tooLong('fieldManager', maxManagerLength))
  if (causes.length > 0) throw invalidOptions(kind, causes)
  return {
    dryRun: dryRun.length > 0,
    manager: manager || managerFrom(userAgent),
    isManagerGiven: manager !== '',
    fieldValidation: isFieldValidation(fieldValidation) ? fieldValidation : 'Warn',
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

function isFieldValidation(text: string): text is FieldValidation {
  return text === 'Strict' || text === 'Warn' || text === 'Ignore'
}
