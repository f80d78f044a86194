import { invalidOptions, type StatusCause, tooLong, unsupportedValue } from '../../object/index.ts'
import { readBoolean } from '../../object/route.ts'

export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** The query options of every write. */
export type WriteOptions = {
  readonly dryRun: boolean
  /** The owner of the fields that this write sets: the query's fieldManager, else the first word of the User-Agent. */
  readonly manager: string
  /** True when the query has a fieldManager, which server-side apply requires. */
  readonly isManagerGiven: boolean
  readonly fieldValidation: FieldValidation
  readonly force: boolean
  readonly nowMs: number
  /** Texts for `Warning: 299` headers. */
  readonly warnings: string[]
}

const maxManagerLength = 128

/** @throws {StatusError} Invalid for values that Kubernetes does not allow. */
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
  else causes.push(...unprintable(manager))
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

// In Go's wording: the position counts bytes, and unprintable characters are shown as code points.
function unprintable(manager: string): StatusCause[] {
  const causes: StatusCause[] = []
  if (/^[ -~]*$/.test(manager)) return causes
  let position = 0
  for (const character of manager) {
    if (!/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(character)) {
      const code = character.codePointAt(0)!.toString(16)
      const why = `invalid character U+${code.toUpperCase().padStart(4, '0')} (at position ${position})`
      causes.push({ field: 'fieldManager', reason: 'FieldValueInvalid', message: `Invalid value: ${quoted(manager)}: ${why}` })
    }
    position += Buffer.byteLength(character)
  }
  return causes
}

function quoted(text: string): string {
  return JSON.stringify(text).replace(/\\u00([01][0-9a-f]|7f)/g, '\\x$1')
}

function managerFrom(userAgent: string | undefined): string {
  if (!userAgent) return 'unknown'
  const slash = userAgent.indexOf('/')
  return (slash < 0 ? userAgent : userAgent.slice(0, slash)).slice(0, maxManagerLength) || 'unknown'
}

function isFieldValidation(text: string): text is FieldValidation {
  return text === 'Strict' || text === 'Warn' || text === 'Ignore'
}
