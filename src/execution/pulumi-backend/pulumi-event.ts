import { equalJson, getOwn, isJsonObject } from '../../kubernetes/object/index.ts'

/** What the engine does with one resource. Inputs and outputs are dropped: they are large and may be secret. */
export type PulumiResourceStep = {
  readonly urn: string
  readonly type: string
  /** same, create, update, delete, replace, create-replacement, delete-replaced, read, refresh, import … */
  readonly op: string
  /** As the provider assigned it; undefined before. */
  readonly id?: string | undefined
  readonly provider?: string | undefined
  /** Names of properties that require a replacement, and of those that change. */
  readonly replaceKeys: readonly string[]
  readonly changedKeys: readonly string[]
  /** Path of a property to the kind of its difference: add, delete, update, each also with `-replace`. */
  readonly detailedDiff: Readonly<Record<string, string>>
  /** A step of the program, not one that follows from another, such as the deletion of a replaced resource. */
  readonly isLogical: boolean
  readonly isProtected: boolean
  /** Of the steps refresh and same, at their end: what is stored of the resource differs from before. A secret is masked before and after. */
  readonly isStateChange: boolean
}

export type PulumiDiagnosticSeverity = 'debug' | 'info' | 'info#err' | 'warning' | 'error'

/**
 * An event of Pulumi's engine (`apitype.EngineEvent`), without what Oarlock does not show. Texts have at most 16 Ki characters and no colour
 * codes. The CLI masks the secrets it knows as `[secret]`; a text may contain others that the program printed, so mask it before it is logged.
 */
export type PulumiEvent = {
  /** Unique in an update; later events have higher ones. */
  readonly sequence: number
  readonly timeMs: number
} & (
  | { readonly kind: 'resourceStarted' | 'resourceDone'; readonly step: PulumiResourceStep; readonly isPreview: boolean }
  | { readonly kind: 'resourceFailed'; readonly step: PulumiResourceStep }
  | {
      readonly kind: 'diagnostic'
      readonly severity: PulumiDiagnosticSeverity
      readonly message: string
      readonly urn?: string | undefined
      /** Replaced by a later one of the same resource. */
      readonly isEphemeral: boolean
    }
  | { readonly kind: 'output'; readonly message: string }
  | { readonly kind: 'error'; readonly message: string }
  | {
      readonly kind: 'summary'
      /** Operation to the number of resources. */
      readonly changes: Readonly<Record<string, number>>
      readonly durationSeconds: number
      readonly isPreview: boolean
      readonly maybeCorrupt: boolean
      /** succeeded, failed or canceled; empty from older CLIs. */
      readonly result: string
      /** Name of a policy pack to its version. */
      readonly policyPacks: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'policy'
      readonly urn?: string | undefined
      readonly message: string
      readonly policy: string
      readonly pack: string
      readonly packVersion: string
      /** warning, mandatory, remediate or none. */
      readonly enforcementLevel: string
    }
  | {
      /** A plugin is downloaded or installed. */
      readonly kind: 'progress'
      readonly operation: string
      readonly id: string
      readonly message: string
      readonly completed: number
      readonly total: number
      readonly isDone: boolean
    }
)

const maxTextLength = 16_384
const maxKeys = 1_000

/**
 * Parses one event. Undefined: it is of a kind that is not shown (prelude, cancel, start of the debugger, a policy pack that was loaded, or a kind
 * that this version does not know), or is malformed.
 */
export function parsePulumiEvent(value: unknown): PulumiEvent | undefined {
  if (!isJsonObject(value)) return undefined
  const base = { sequence: toNumber(value.sequence), timeMs: toNumber(value.timestamp) * 1_000 }
  const part = (name: string) => {
    const found = getOwn(value, name)
    return isJsonObject(found) ? found : undefined
  }
  for (const [name, kind] of [
    ['resourcePreEvent', 'resourceStarted'],
    ['resOutputsEvent', 'resourceDone'],
    ['resOpFailedEvent', 'resourceFailed'],
  ] as const) {
    const event = part(name)
    if (!event) continue
    const step = parseStep(event.metadata)
    return step && { ...base, kind, step, isPreview: event.planning === true }
  }
  const diagnostic = part('diagnosticEvent')
  if (diagnostic) {
    const { severity, ephemeral, prefix } = diagnostic
    return {
      ...{ ...base, kind: 'diagnostic', severity: isSeverity(severity) ? severity : 'info', isEphemeral: ephemeral === true },
      ...{ message: truncate(toPlainText(prefix) + toPlainText(diagnostic.message)), urn: toOptionalText(diagnostic.urn) },
    }
  }
  const output = part('stdoutEvent')
  if (output) return { ...base, kind: 'output', message: truncate(toPlainText(output.message)) }
  const error = part('errorEvent')
  if (error) return { ...base, kind: 'error', message: truncate(toPlainText(error.error)) }
  const summary = part('summaryEvent')
  if (summary) {
    return {
      ...{ ...base, kind: 'summary', changes: pick(summary.resourceChanges, isCount), durationSeconds: toNumber(summary.durationSeconds) },
      ...{ isPreview: summary.isPreview === true, maybeCorrupt: summary.maybeCorrupt === true, result: toText(summary.result) },
      // This one field of the protocol starts with a capital letter.
      policyPacks: pick(summary.PolicyPacks, isText),
    }
  }
  const policy = part('policyEvent')
  if (policy) {
    return {
      ...{ ...base, kind: 'policy', urn: toOptionalText(policy.resourceUrn), message: truncate(toPlainText(policy.message)) },
      ...{ policy: toText(policy.policyName), pack: toText(policy.policyPackName) },
      ...{ packVersion: toText(policy.policyPackVersion), enforcementLevel: toText(policy.enforcementLevel) },
    }
  }
  const remediation = part('policyRemediationEvent')
  if (remediation) {
    return {
      ...{ ...base, kind: 'policy', urn: toOptionalText(remediation.resourceUrn), message: 'the resource was remediated' },
      ...{ policy: toText(remediation.policyName), pack: toText(remediation.policyPackName) },
      ...{ packVersion: toText(remediation.policyPackVersion), enforcementLevel: 'remediate' },
    }
  }
  const progress = part('progressEvent')
  if (progress) {
    return {
      ...{ ...base, kind: 'progress', operation: toText(progress.type), id: toText(progress.id), message: toPlainText(progress.message) },
      // The field of completed items is named "received".
      ...{ completed: toNumber(progress.received), total: toNumber(progress.total), isDone: progress.done === true },
    }
  }
  return undefined
}

function parseStep(value: unknown): PulumiResourceStep | undefined {
  if (!isJsonObject(value) || typeof value.urn !== 'string' || typeof value.op !== 'string') return undefined
  const states = [value.new, value.old].filter(isJsonObject)
  const id = states.map(state => state.id).find(each => typeof each === 'string' && each !== '') as string | undefined
  const diff = isJsonObject(value.detailedDiff) ? value.detailedDiff : {}
  return {
    ...{ urn: truncate(value.urn), type: toText(value.type), op: truncate(value.op), id: id === undefined ? undefined : truncate(id) },
    ...{ provider: toOptionalText(value.provider), replaceKeys: toTexts(value.keys), changedKeys: toTexts(value.diffs) },
    detailedDiff: pick(diff, isText, each => (isJsonObject(each) ? each.diffKind : undefined)),
    ...{ isLogical: value.logical === true, isProtected: states.some(state => state.protect === true) },
    isStateChange: (value.op === 'refresh' || value.op === 'same') && isStateChange(value.old, value.new),
  }
}

function isStateChange(before: unknown, after: unknown): boolean {
  if (!isJsonObject(before)) return false
  if (!isJsonObject(after)) return true
  const differs = (field: 'inputs' | 'outputs') => !equalJson(before[field] ?? {}, after[field] ?? {})
  return differs('outputs') || differs('inputs')
}

const severities: readonly unknown[] = ['debug', 'info', 'info#err', 'warning', 'error']
const isSeverity = (value: unknown): value is PulumiDiagnosticSeverity => severities.includes(value)
const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= maxTextLength
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const truncate = (text: string): string => (text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength - 1)}…`)
const toText = (value: unknown): string => (typeof value === 'string' ? truncate(value) : '')
const toOptionalText = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? truncate(value) : undefined)
const toNumber = (value: unknown): number => (typeof value === 'number' && Math.abs(value) <= 1e12 ? value : 0)
const toTexts = (value: unknown): string[] => (Array.isArray(value) ? value.filter(isText).slice(0, maxKeys) : [])

/** Without the colour codes that the CLI leaves in (`<{%reset%}>`). */
const toPlainText = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, maxTextLength * 2).replaceAll(/<\{%[^%]{0,40}%\}>/g, '') : ''

/** The entries of an object whose value is accepted, at most {@link maxKeys}. */
function pick<T>(value: unknown, accept: (value: unknown) => value is T, read = (each: unknown): unknown => each): Record<string, T> {
  if (!isJsonObject(value)) return {}
  const found: [string, T][] = []
  for (const [key, each] of Object.entries(value)) {
    const result = read(each)
    if (accept(result) && found.push([truncate(key), result]) >= maxKeys) break
  }
  return Object.fromEntries(found)
}
