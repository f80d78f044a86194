import { duplicateValue, invalidType, invalidValue, tooLong } from './field-cause.ts'
import { isJsonObject } from './json.ts'
import { parseApiVersion } from './object.ts'
import type { StatusCause } from './status-error.ts'

/** The names that a kind allows. Most kinds use `dns1123Subdomain`; Namespaces `dns1123Label`; RBAC kinds `pathSegment`. */
export type NameRule = 'dns1123Subdomain' | 'dns1123Label' | 'dns1035Label' | 'pathSegment'

/** The limit for all annotations of one object together, keys and values: 256 KiB. */
export const maxAnnotationBytes = 256 * 1024

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const subdomain = `${label}(\\.${label})*`
const label1035 = '[a-z]([-a-z0-9]*[a-z0-9])?'
const qualified = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const labelValue = `(${qualified})?`

const labelPattern = whole(label)
const subdomainPattern = whole(subdomain)
const label1035Pattern = whole(label1035)
const qualifiedPattern = whole(qualified)

const subdomainHint = hint(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  subdomain,
  'example.com',
)
const labelHint = hint(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  label,
  'my-name',
  '123-abc',
)
const label1035Hint = hint(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  label1035,
  'my-name',
  'abc-123',
)
const qualifiedHint = hint(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  qualified,
  'MyName',
  'my.name',
  '123-abc',
)
const labelValueHint = hint(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  labelValue,
  'MyValue',
  'my_value',
  '12345',
)

function whole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`)
}

// The two spaces before "or" are as in Kubernetes; tools compare these texts.
function hint(what: string, pattern: string, ...examples: string[]): string {
  return `${what} (e.g. ${examples.map(example => `'${example}', `).join(' or ')}regex used for validation is '${pattern}')`
}

/** Why `value` violates `rule`, in Kubernetes' words; empty if it does not. */
export function nameErrors(value: string, rule: NameRule): string[] {
  switch (rule) {
    case 'dns1123Subdomain':
      return checked(value, 253, subdomainPattern, subdomainHint)
    case 'dns1123Label':
      return checked(value, 63, labelPattern, subdomainPattern.test(value) ? 'must not contain dots' : labelHint)
    case 'dns1035Label':
      return checked(value, 63, label1035Pattern, label1035Hint)
    case 'pathSegment': {
      if (value === '.' || value === '..') return [`may not be '${value}'`]
      return ['/', '%'].filter(part => value.includes(part)).map(part => `may not contain '${part}'`)
    }
  }
}

function checked(value: string, max: number, pattern: RegExp, why: string, unit = 'characters'): string[] {
  if (value.length > max) {
    const texts = [`must be no more than ${max} ${unit}`]
    // Above this length a hostile value is rejected without running the pattern.
    if (value.length <= 1_024 && !pattern.test(value)) texts.push(why)
    return texts
  }
  return pattern.test(value) ? [] : [why]
}

/** Why `value` is not a qualified name such as `app` or `oarlock.dev/stack`, the format of label keys. */
export function qualifiedNameErrors(value: string): string[] {
  const parts = value.split('/', 3)
  if (parts.length > 2) {
    return [`a valid label key ${qualifiedHint} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`]
  }
  const errors: string[] = []
  const [prefix, name] = parts.length === 2 ? (parts as [string, string]) : [undefined, value]
  if (prefix === '') errors.push('prefix part must be non-empty')
  else if (prefix !== undefined) errors.push(...nameErrors(prefix, 'dns1123Subdomain').map(text => `prefix part ${text}`))
  if (name === '') errors.push('name part must be non-empty')
  else if (name.length > 63) errors.push('name part must be no more than 63 bytes')
  if (name.length > 1_024 || !qualifiedPattern.test(name)) errors.push(`name part ${qualifiedHint}`)
  return errors
}

/** Why `value` is not a valid label value. */
export function labelValueErrors(value: string): string[] {
  return value === '' ? [] : checked(value, 63, qualifiedPattern, labelValueHint, 'bytes')
}

/** Metadata can contain any number of errors; more causes than this are of no use. */
const maxCauses = 200

/** Why `labels` (any JSON value) are not valid labels; `path` is their field, such as `metadata.labels`. */
export function labelErrors(labels: unknown, path: string): StatusCause[] {
  if (labels === undefined || labels === null) return []
  if (!isJsonObject(labels)) return [wrongType(path, labels, 'object')]
  const causes: StatusCause[] = []
  for (const key of Object.keys(labels)) {
    if (causes.length >= maxCauses) break
    const value = labels[key]
    for (const text of qualifiedNameErrors(key)) causes.push(invalidValue(path, key, text))
    if (typeof value !== 'string') causes.push(wrongType(`${path}.${key}`, value, 'string'))
    else for (const text of labelValueErrors(value)) causes.push(invalidValue(path, value, text))
  }
  return causes
}

/** Why `annotations` are not valid annotations: keys as for labels, any string as a value, {@link maxAnnotationBytes} in total. */
export function annotationErrors(annotations: unknown, path: string): StatusCause[] {
  if (annotations === undefined || annotations === null) return []
  if (!isJsonObject(annotations)) return [wrongType(path, annotations, 'object')]
  const causes: StatusCause[] = []
  let bytes = 0
  for (const key of Object.keys(annotations)) {
    if (causes.length >= maxCauses) break
    const value = annotations[key]
    for (const text of qualifiedNameErrors(key.toLowerCase())) causes.push(invalidValue(path, key, text))
    if (typeof value !== 'string') causes.push(wrongType(`${path}.${key}`, value, 'string'))
    else bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > maxAnnotationBytes) causes.push(tooLong(path, maxAnnotationBytes))
  return causes
}

// The last one is used by CustomResourceDefinitions.
const standardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion', 'customresourcecleanup.apiextensions.k8s.io'])

/**
 * Why `finalizers` are not valid finalizers: they must be qualified names, and contain only one way of deleting dependents.
 * @param options.mayBeUnqualified allows names without a domain, as Kubernetes does for custom resources.
 */
export function finalizerErrors(finalizers: unknown, path: string, { mayBeUnqualified = false } = {}): StatusCause[] {
  if (finalizers === undefined || finalizers === null) return []
  if (!Array.isArray(finalizers)) return [wrongType(path, finalizers, 'array')]
  const causes: StatusCause[] = []
  const seen = new Set<unknown>()
  for (const [index, finalizer] of finalizers.entries()) {
    if (causes.length >= maxCauses) break
    if (typeof finalizer !== 'string') {
      causes.push(wrongType(`${path}[${index}]`, finalizer, 'string'))
      continue
    }
    for (const text of qualifiedNameErrors(finalizer)) causes.push(invalidValue(path, finalizer, text))
    if (!mayBeUnqualified && isUnqualified(finalizer)) {
      causes.push(invalidValue(`${path}[${index}]`, finalizer, 'name is neither a standard finalizer name nor is it fully qualified'))
    }
    if (seen.has(finalizer)) causes.push(duplicateValue(`${path}[${index}]`, finalizer))
    seen.add(finalizer)
  }
  if (seen.has('orphan') && seen.has('foregroundDeletion')) {
    causes.push(invalidValue(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return causes
}

const isUnqualified = (finalizer: string) => !finalizer.includes('/') && !standardFinalizers.has(finalizer)

/** Warnings for finalizers that custom resources may have but should not. `before` are the previous ones, which are not reported again. */
export function finalizerWarnings(finalizers: readonly string[], before: readonly string[], path: string): string[] {
  const known = new Set(before)
  const added = new Set(finalizers.filter(finalizer => isUnqualified(finalizer) && !known.has(finalizer)))
  return [...added].sort().map(finalizer => {
    const better = `a domain-qualified finalizer name${finalizer.includes('.') ? ' including a path (/)' : ''}`
    return `${path}: ${JSON.stringify(finalizer)}: prefer ${better} to avoid accidental conflicts with other finalizer writers`
  })
}

/** Why `references` are not valid owner references: they must be complete and distinct, with at most one controller and no Event. */
export function ownerReferenceErrors(references: unknown, path: string): StatusCause[] {
  if (references === undefined || references === null) return []
  if (!Array.isArray(references)) return [wrongType(path, references, 'array')]
  const causes: StatusCause[] = []
  let controller: string | undefined
  for (const [index, reference] of references.entries()) {
    if (causes.length >= maxCauses) break
    const at = `${path}[${index}]`
    if (!isJsonObject(reference)) {
      causes.push(wrongType(at, reference, 'object'))
      continue
    }
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      const value = reference[field] ?? ''
      // Kubernetes omits the index here.
      if (typeof value !== 'string') causes.push(wrongType(`${at}.${field}`, value, 'string'))
      else if (field === 'apiVersion' && parseApiVersion(value).version === '') {
        causes.push(invalidValue(`${path}.${field}`, value, 'version must not be empty'))
      } else if (value === '') causes.push(invalidValue(`${path}.${field}`, '', 'must not be empty'))
    }
    for (const field of ['controller', 'blockOwnerDeletion'] as const) {
      const value = reference[field]
      if (value !== undefined && value !== null && typeof value !== 'boolean') causes.push(wrongType(`${at}.${field}`, value, 'boolean'))
    }
    if (reference.kind === 'Event' && (reference.apiVersion === 'v1' || reference.apiVersion === 'events.k8s.io/v1')) {
      const { group, version } = parseApiVersion(reference.apiVersion)
      causes.push(invalidValue(path, reference, `${group}/${version}, Kind=Event is disallowed from being an owner`))
    }
    if (reference.controller === true) {
      if (controller !== undefined) {
        const found = `Found "true" in references for ${controller} and ${reference.kind}/${reference.name}`
        causes.push(invalidValue(path, references, `Only one reference can have Controller set to true. ${found}`))
      }
      controller = `${reference.kind}/${reference.name}`
    }
  }
  return causes
}

function wrongType(path: string, value: unknown, wanted: string): StatusCause {
  const got = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  return invalidType(path, got, `${path} in body must be of type ${wanted}: "${got}"`)
}
