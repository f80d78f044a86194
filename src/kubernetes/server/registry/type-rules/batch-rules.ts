import {
  duplicateValue,
  invalidValue,
  isJsonObject,
  type LabelSelectorObject,
  nameErrors,
  qualifiedNameErrors,
  requiredValue,
  type StatusCause,
  tooLong,
  tooMany,
  unsupportedValue,
} from '../../../object/index.ts'
import { isTimeZone, scheduleError } from './cron-schedule.ts'
import { readIndexes } from './job-indexes.ts'
import { negativeErrors, numberOf } from './number-checks.ts'
import { goSelector } from './selector-rules.ts'
import type { Fields, RuleTable } from './type-rules.ts'

const maxInt32 = 2 ** 31 - 1
/** A larger number would make the list of completed indexes in the status too long. */
const maxIndexes = 100_000
/** The limit for Jobs with more than {@link maxIndexes} completions. */
const maxIndexedFailures = 10_000
const maxRules = 20

/** Rules of the types in the group batch. */
export const batchRules: RuleTable = {
  // Only for Jobs: the job template of a CronJob stays as it was sent until it becomes a Job.
  'batch.v1.Job': {
    setDefaults: job => {
      const spec: Fields = { ...(job.spec as Fields | undefined) }
      if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1
      spec.parallelism ??= 1
      spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : maxInt32
      spec.completionMode ??= 'NonIndexed'
      spec.suspend ??= false
      spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed'
      spec.manualSelector ??= false
      job.spec = spec
    },
  },
  'batch.v1.JobSpec': {
    uncheckedEnums: ['completionMode', 'podReplacementPolicy'],
    validate: (spec, { path }) => [
      ...negativeErrors(spec, path, jobCounts),
      ...(typeof spec.managedBy === 'string' ? managedByErrors(spec.managedBy, `${path}.managedBy`) : []),
      ...indexErrors(spec, path),
      ...policyErrors(spec, path),
      ...restartErrors(spec, path),
    ],
  },
  'batch.v1.PodFailurePolicyOnPodConditionsPattern': {
    setDefaults: pattern => {
      if (!pattern.status) pattern.status = 'True'
    },
  },
  'batch.v1.JobTemplateSpec': {
    validate: ({ spec }, { path }) => {
      const { selector, manualSelector } = (spec ?? {}) as { selector?: LabelSelectorObject; manualSelector?: boolean }
      const causes: StatusCause[] = []
      if (selector) causes.push(invalidValue(`${path}.spec.selector`, goSelector(selector), '`selector` will be auto-generated'))
      if (manualSelector) causes.push(unsupportedValue(`${path}.spec.manualSelector`, true, ['nil', 'false']))
      return causes
    },
  },
  'batch.v1.CronJobSpec': {
    defaults: { concurrencyPolicy: 'Allow', suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1 },
    required: { schedule: '' },
    validate: (spec, { path, oldObject }) => {
      const oldSpec = oldObject?.spec as Fields | undefined
      const { schedule, timeZone } = spec
      return [
        ...(typeof schedule === 'string' && schedule !== '' ? scheduleErrors(schedule, timeZone, oldSpec, `${path}.schedule`) : []),
        ...negativeErrors(spec, path, ['startingDeadlineSeconds', 'successfulJobsHistoryLimit', 'failedJobsHistoryLimit']),
        ...(typeof timeZone === 'string' && timeZone !== oldSpec?.timeZone ? timeZoneErrors(timeZone, `${path}.timeZone`) : []),
      ]
    },
  },
}

const jobCounts = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
]

const prefixedPath = 'must be a domain-prefixed path (such as "acme.io/foo")'

function managedByErrors(managedBy: string, path: string): StatusCause[] {
  return [...domainPrefixedPathErrors(managedBy, path), ...(managedBy.length > 63 ? [tooLong(path, 63)] : [])]
}

/** Errors of `value`, which must be a name such as `example.com/ingress`. */
export function domainPrefixedPathErrors(value: string, path: string): StatusCause[] {
  if (value === '') return [requiredValue(path)]
  const slash = value.indexOf('/')
  const [domain, rest] = [value.slice(0, slash), value.slice(slash + 1)]
  if (slash < 0 || domain === '' || rest === '') return [invalidValue(path, value, prefixedPath)]
  const causes = nameErrors(domain, 'dns1123Subdomain').map(reason => invalidValue(path, domain, reason))
  if (!/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(rest))
    causes.push(invalidValue(path, rest, "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"))
  return causes
}

function indexErrors(spec: Fields, path: string): StatusCause[] {
  const { completionMode: mode = 'NonIndexed', completions, parallelism, maxFailedIndexes, backoffLimitPerIndex } = spec
  const causes: StatusCause[] = []
  const reject = (field: string, reason: string) => causes.push(invalidValue(`${path}.${field}`, spec[field], reason))
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    causes.push(requiredValue(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified'))
  }
  if (mode === 'NonIndexed') {
    for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes']) {
      if (spec[field] !== undefined) reject(field, 'requires indexed completion mode')
    }
    return causes
  }
  if (mode !== 'Indexed') return [...causes, unsupportedValue(`${path}.completionMode`, mode, ['NonIndexed', 'Indexed'])]
  if (completions === undefined) causes.push(requiredValue(`${path}.completions`, 'when completion mode is Indexed'))
  if (numberOf(parallelism) > maxIndexes)
    reject('parallelism', `must be less than or equal to ${maxIndexes} when completion mode is Indexed`)
  if (completions !== undefined && numberOf(maxFailedIndexes) > numberOf(completions)) {
    reject('maxFailedIndexes', 'must be less than or equal to completions')
  }
  if (numberOf(maxFailedIndexes) > maxIndexes) reject('maxFailedIndexes', `must be less than or equal to ${maxIndexes}`)
  if (numberOf(completions) <= maxIndexes || backoffLimitPerIndex === undefined) return causes
  const reason = `must be less than or equal to ${maxIndexedFailures} when completions are above ${maxIndexes} and used with backoff limit per index`
  if (maxFailedIndexes === undefined) {
    causes.push(requiredValue(`${path}.maxFailedIndexes`, `must be specified when completions is above ${maxIndexes}`))
  }
  for (const field of ['parallelism', 'maxFailedIndexes']) if (numberOf(spec[field]) > maxIndexedFailures) reject(field, reason)
  return causes
}

function policyErrors(spec: Fields, path: string): StatusCause[] {
  const { podFailurePolicy, successPolicy, completionMode, podReplacementPolicy: replacementPolicy } = spec
  const causes: StatusCause[] = []
  if (isJsonObject(podFailurePolicy)) causes.push(...failurePolicyErrors(spec, podFailurePolicy, `${path}.podFailurePolicy.rules`))
  if (isJsonObject(successPolicy)) {
    const successPath = `${path}.successPolicy`
    const goStruct = { Rules: successPolicy.rules ?? [] }
    if (completionMode !== 'Indexed') causes.push(invalidValue(successPath, goStruct, 'requires indexed completion mode'))
    else causes.push(...successPolicyErrors(numberOf(spec.completions), successPolicy, `${successPath}.rules`))
  }
  const allowed = podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed']
  if (replacementPolicy !== undefined && !allowed.includes(String(replacementPolicy)))
    causes.push(unsupportedValue(`${path}.podReplacementPolicy`, replacementPolicy, allowed))
  return causes
}

function failurePolicyErrors(spec: Fields, { rules }: Fields, path: string): StatusCause[] {
  const ruleList = (rules ?? []) as Fields[]
  const causes = ruleList.length > maxRules ? [tooMany(path, ruleList.length, maxRules)] : []
  const podSpec = ((spec.template as Fields | undefined)?.spec ?? {}) as { containers?: Fields[]; initContainers?: Fields[] }
  const names = new Set([...(podSpec.containers ?? []), ...(podSpec.initContainers ?? [])].map(({ name }) => name))
  for (const [index, rule] of ruleList.entries()) {
    const rulePath = `${path}[${index}]`
    const { action, onExitCodes } = rule
    const conditions = (rule.onPodConditions ?? []) as Fields[]
    if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined) {
      causes.push(invalidValue(`${rulePath}.action`, action, 'requires the backoffLimitPerIndex to be set'))
    } else if (!action) causes.push(requiredValue(`${rulePath}.action`, 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'))
    if (isJsonObject(onExitCodes)) causes.push(...exitCodeErrors(onExitCodes, `${rulePath}.onExitCodes`, names))
    causes.push(...conditions.flatMap((condition, i) => conditionErrors(condition, `${rulePath}.onPodConditions[${i}]`)))
    if (conditions.length > maxRules) causes.push(tooMany(`${rulePath}.onPodConditions`, conditions.length, maxRules))
    if (onExitCodes !== undefined && conditions.length > 0)
      causes.push(invalidWithoutValue(rulePath, 'specifying both OnExitCodes and OnPodConditions is not supported'))
    if (onExitCodes === undefined && conditions.length === 0) {
      causes.push(invalidWithoutValue(rulePath, 'specifying one of OnExitCodes and OnPodConditions is required'))
    }
  }
  return causes
}

/** An `Invalid value` error without the value. */
export function invalidWithoutValue(field: string, reason: string): StatusCause {
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${reason}`, field }
}

const maxExitCodes = 255

function exitCodeErrors({ operator, containerName, values }: Fields, path: string, names: ReadonlySet<unknown>): StatusCause[] {
  const causes: StatusCause[] = []
  const codes = (values ?? []) as number[]
  if (!operator) causes.push(requiredValue(`${path}.operator`, 'valid values: ["In" "NotIn"]'))
  if (containerName !== undefined && !names.has(containerName)) {
    const reason = 'must be one of the container or initContainer names in the pod template'
    causes.push(invalidValue(`${path}.containerName`, containerName, reason))
  }
  if (codes.length === 0) causes.push(invalidValue(`${path}.values`, codes, 'at least one value is required'))
  // Above the limit, values are not compared with each other.
  if (codes.length > maxExitCodes) return [...causes, tooMany(`${path}.values`, codes.length, maxExitCodes)]
  for (const [index, code] of codes.entries()) {
    const itemPath = `${path}.values[${index}]`
    if (operator === 'In' && code === 0) causes.push(invalidValue(itemPath, code, 'must not be 0 for the In operator'))
    if (codes.indexOf(code) < index) causes.push(duplicateValue(itemPath, code))
  }
  if (codes.some((code, index) => index > 0 && codes[index - 1]! > code))
    causes.push(invalidValue(`${path}.values`, codes, 'must be ordered'))
  return causes
}

function conditionErrors({ type, status }: Fields, path: string): StatusCause[] {
  const causes = qualifiedNameErrors(String(type ?? '')).map(reason => invalidValue(`${path}.type`, type ?? '', reason))
  const allowed = ['False', 'True', 'Unknown']
  if (!allowed.includes(String(status))) causes.push(unsupportedValue(`${path}.status`, status, allowed))
  return causes
}

const maxIndexTextBytes = 64 * 1024

function successPolicyErrors(completions: number, { rules }: Fields, path: string): StatusCause[] {
  const ruleList = (rules ?? []) as Fields[]
  const causes: StatusCause[] = []
  if (ruleList.length === 0) causes.push(requiredValue(path, 'at least one rules must be specified when the successPolicy is specified'))
  if (ruleList.length > maxRules) causes.push(tooMany(path, ruleList.length, maxRules))
  for (const [index, { succeededCount: count, succeededIndexes: indexes }] of ruleList.entries()) {
    const rulePath = `${path}[${index}]`
    if (count === undefined && indexes === undefined) {
      causes.push(requiredValue(rulePath, 'at least one of succeededCount or succeededIndexes must be specified'))
    }
    let total: number | undefined
    if (typeof indexes === 'string') {
      if (indexes.length > maxIndexTextBytes) causes.push(tooLong(`${rulePath}.succeededIndexes`, maxIndexTextBytes))
      const parsed = readIndexes(indexes, completions)
      if ('reason' in parsed)
        causes.push(invalidValue(`${rulePath}.succeededIndexes`, indexes, `error parsing succeededIndexes: ${parsed.reason}`))
      total = 'reason' in parsed ? 0 : parsed.total
    }
    if (typeof count !== 'number') continue
    const notAbove = (limit: number, limitName: string) => `must be less than or equal to ${limit} (${limitName})`
    if (count < 0) causes.push(invalidValue(`${rulePath}.succeededCount`, count, 'must be greater than or equal to 0'))
    if (count > completions)
      causes.push(invalidValue(`${rulePath}.succeededCount`, count, notAbove(completions, 'the number of specified completions')))
    if (total !== undefined && count > total) {
      causes.push(
        invalidValue(`${rulePath}.succeededCount`, count, notAbove(total, 'the number of indexes in the specified succeededIndexes field')),
      )
    }
  }
  return causes
}

function restartErrors({ template, podFailurePolicy }: Fields, path: string): StatusCause[] {
  const { restartPolicy } = ((template as Fields | undefined)?.spec ?? {}) as Fields
  const policyPath = `${path}.template.spec.restartPolicy`
  if (restartPolicy === undefined || restartPolicy === 'Always') return [requiredValue(policyPath, 'valid values: "OnFailure", "Never"')]
  if (restartPolicy !== 'OnFailure' && restartPolicy !== 'Never')
    return [unsupportedValue(policyPath, restartPolicy, ['OnFailure', 'Never'])]
  if (podFailurePolicy === undefined || restartPolicy === 'Never') return []
  return [invalidValue(policyPath, restartPolicy, 'only "Never" is supported when podFailurePolicy is specified')]
}

function scheduleErrors(schedule: string, timeZone: unknown, oldSpec: Fields | undefined, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const reason = scheduleError(schedule)
  if (reason) causes.push(invalidValue(path, schedule, reason))
  if (!schedule.includes('TZ')) return causes
  if (!String(oldSpec?.schedule ?? '').includes('TZ')) {
    causes.push(invalidValue(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'))
  } else if (timeZone !== undefined)
    causes.push(invalidValue(path, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'))
  return causes
}

function timeZoneErrors(timeZone: string, path: string): StatusCause[] {
  if (timeZone === '') return [invalidValue(path, '', 'timeZone must be nil or non-empty string')]
  if (timeZone.toLowerCase() === 'local') {
    const reason = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
    return [invalidValue(path, timeZone, reason)]
  }
  const isNamed = timeZone.split('/').every(part => /^[A-Za-z._0-9+][A-Za-z.\-_0-9+]{0,13}$/.test(part) && part !== '.' && part !== '..')
  return isNamed && isTimeZone(timeZone) ? [] : [invalidValue(path, timeZone, `unknown time zone ${timeZone}`)]
}
