import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { isPlainSpecialValue, secretOf, signatureKey } from '../../../stores/pulumi/index.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** A place in the paths to sensitive values: whether such a path ends here, and which steps follow. */
type Mark = { isSensitive: boolean; readonly next: Map<string, Mark> }

/** Those of sensitive values. A text that is one of them, or contains a long one, is sensitive too, wherever it is: providers copy values to other attributes. */
type SensitiveTexts = { readonly all: ReadonlySet<string>; readonly long: readonly string[] }

/** Which parts of a value are sensitive. */
export type Marks = {
  /** Several: a step may lead to more than one place, see {@link isTyped}. */
  readonly here: ReadonlySet<Mark>
  readonly texts: SensitiveTexts
  /** Of the whole value: the names of the attributes of a resource are in the schema. */
  readonly isRoot?: boolean
}

/** A part of a value: the key or index that leads to it, and what of it is sensitive. */
export type Part = { readonly step: string | number; readonly value: unknown; readonly marks: Marks }

/** How many sensitive paths of one resource are read. With more, all of it is hidden: resources have at most a few hundred. */
const maxSensitivePaths = 100_000
/** Shorter texts, such as `on`, are looked for nowhere else. */
const minTextLength = 4
/** From this length on a text is looked for within others. With more of them than these, all of a resource is hidden. */
const minLongLength = 8
const maxLongTexts = 1_000

/** What resources of built-in providers copy from elsewhere without marks: outputs of another state, and credentials of its backend. */
const unmarkedPaths: ReadonlyMap<string, readonly string[][]> = new Map([
  ['terraform_remote_state', [['config'], ['defaults'], ['outputs']]],
])

const nothing: ReadonlySet<Mark> = new Set()
const everything: ReadonlySet<Mark> = new Set([{ isSensitive: true, next: new Map() }])
const noTexts: SensitiveTexts = { all: new Set(), long: [] }
export const noMarks: Marks = { here: nothing, texts: noTexts }
export const allMarked: Marks = { here: everything, texts: noTexts }
const eachMarked: Marks = { here: nothing, texts: noTexts }

/** The parts of a value: none of one that is neither an object nor a list, or empty. Undefined: it is sensitive, with its keys and its length. */
export function partsOf(value: unknown, marks: Marks): readonly Part[] | undefined {
  const { here, texts } = marks
  if (hasMark(here, ({ isSensitive }) => isSensitive) || isSecret(value) || hasText(value, marks)) return undefined
  const entries = entriesOf(value)
  if (marks === eachMarked) return entries.map(([step, part]) => ({ step, value: part, marks: allMarked }))
  const below = (next: ReadonlySet<Mark>): Marks => (next.size === 0 && texts.all.size === 0 ? noMarks : { here: next, texts })
  if (here.size === 0) {
    const unmarked = below(nothing)
    return entries.map(([step, part]) => ({ step, value: part, marks: unmarked }))
  }
  if (isTyped(value))
    return [
      { step: 'value', value: value.value, marks: below(new Set([...here, ...nextMarks(here, 'value')])) },
      // The type of an object has the names of its attributes, which may be sensitive.
      { step: 'type', value: value.type, marks: allMarked },
    ]
  const known = new Set(entries.map(([step]) => String(step)))
  // A path that leads to nothing here cannot be followed: what it is meant for may be any part of this value.
  if (hasMark(here, ({ next }) => next.keys().some(step => !known.has(step)))) return undefined
  return entries.map(([step, part]) => ({ step, value: part, marks: below(nextMarks(here, String(step))) }))
}

/** All that an object has is sensitive, but not the names of its attributes. */
export const markEach = (attributes: unknown): Marks => (isJsonObject(attributes) ? eachMarked : allMarked)

/**
 * What is sensitive in the `attributes` of an instance in a state of Terraform or OpenTofu, by its `sensitive_attributes`.
 * @param isRecorded whether the engine that wrote the state records what providers mark as sensitive: {@link recordsSensitiveAttributes}.
 */
export function marksOfInstance(
  { resource, instance }: { readonly resource: JsonObject; readonly instance: JsonObject },
  isRecorded: boolean,
): Marks {
  const { attributes, sensitive_attributes: marked } = instance
  if (!isRecorded || !isJsonObject(attributes) || !Array.isArray(marked) || marked.length > maxSensitivePaths) return markEach(attributes)
  const paths = [...marked.map(pathOfSteps), ...(unmarkedPaths.get(String(resource.type)) ?? [])]
  if (paths.some(path => path.length === 0)) return markEach(attributes)
  // Engines write all attributes of a resource: a path of another one marks nothing.
  const root = markOf(paths.filter(([name = '']) => Object.hasOwn(attributes, name)))
  const input = root.next.get('input')
  // Its provider copies it, and the engine does not mark the copy.
  if (resource.type === 'terraform_data' && input && Object.hasOwn(attributes, 'output')) root.next.set('output', input)
  if (isEmpty(root)) return noMarks
  const here = new Set([root])
  const texts = sensitiveTexts([[attributes, here]])
  return texts ? { here, texts, isRoot: true } : eachMarked
}

/**
 * Whether a version of Terraform or OpenTofu records in `sensitive_attributes` what the schemas of providers mark as sensitive, and not only what sensitive
 * variables lead to: both do from 1.8.0 on (https://github.com/hashicorp/terraform/pull/34567, https://github.com/opentofu/opentofu/pull/1640).
 */
export function recordsSensitiveAttributes(engineVersion: string): boolean {
  const [, major = '0', minor = '0'] = /^(\d{1,6})\.(\d{1,6})\./.exec(engineVersion) ?? []
  return Number(major) > 1 || (major === '1' && Number(minor) >= 8)
}

export type ResourceMarks = { readonly id: Marks; readonly inputs: Marks; readonly outputs: Marks }

/** What is sensitive in a resource of Pulumi: a property that is secret in its inputs or its outputs is not shown of the other either. */
export function marksOfResource({ id, inputs, outputs, additionalSecretOutputs: secret }: JsonObject): ResourceMarks {
  const all = { id: allMarked, inputs: markEach(inputs), outputs: markEach(outputs) }
  if (secret !== undefined && secret !== null && !(Array.isArray(secret) && secret.length <= maxSensitivePaths)) return all
  const named = markOf(((secret ?? []) as unknown[]).map(name => [String(name)]))
  const here = new Set([named, secretMark(inputs), secretMark(outputs)].filter(mark => mark !== undefined && !isEmpty(mark)) as Mark[])
  const [ofInputs, ofOutputs] = [marksWithin(inputs, here), marksWithin(outputs, here)]
  const texts = sensitiveTexts([
    [inputs, ofInputs],
    [outputs, ofOutputs],
  ])
  if (!texts) return all
  const marks = { texts, isRoot: true }
  return {
    id: typeof id === 'object' || nextMarks(here, 'id').size > 0 ? allMarked : { ...marks, here: nothing },
    inputs: { ...marks, here: ofInputs },
    outputs: { ...marks, here: ofOutputs },
  }
}

/** Those of the properties that a resource has: others are sensitive elsewhere only. */
function marksWithin(properties: unknown, marks: ReadonlySet<Mark>): ReadonlySet<Mark> {
  if (properties === undefined || properties === null) return nothing
  if (!isJsonObject(properties)) return everything
  const within = [...marks].map(({ isSensitive, next }) => ({
    ...{ isSensitive, next: new Map([...next].filter(([name]) => Object.hasOwn(properties, name))) },
  }))
  return new Set(within.filter(mark => !isEmpty(mark)))
}

const isEmpty = ({ isSensitive, next }: Mark): boolean => !isSensitive && next.size === 0

/** The secrets of Pulumi in a value. States nest at most 500 levels (`stack-tasks.ts`). */
function secretMark(value: unknown): Mark | undefined {
  if (isSecret(value)) return { isSensitive: true, next: new Map() }
  const next = new Map<string, Mark>()
  for (const [step, part] of entriesOf(value)) {
    const mark = secretMark(part)
    if (mark) next.set(String(step), mark)
  }
  return next.size > 0 ? { isSensitive: false, next } : undefined
}

/** The texts and numbers that are sensitive in these values, but the shortest. Undefined: too many. */
function sensitiveTexts(values: readonly (readonly [value: unknown, here: ReadonlySet<Mark>])[]): SensitiveTexts | undefined {
  const found = new Set<string>()
  const pending = values.map(([part, here]): { readonly part: unknown; readonly marks: Marks } => ({
    part,
    marks: { here, texts: noTexts },
  }))
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { part, marks } = next
    const parts = partsOf(part, marks)
    if (!parts) addTexts(part, found)
    else
      for (const { step, value: inner, marks: below } of parts)
        if (below.here.size > 0 && !(step === 'type' && isTyped(part))) pending.push({ part: inner, marks: below })
  }
  const long = [...found].filter(text => text.length >= minLongLength)
  return long.length > maxLongTexts ? undefined : { all: found, long }
}

function addTexts(value: unknown, found: Set<string>): void {
  const pending = [value]
  while (pending.length > 0) {
    const part = pending.pop()
    const secret = secretOf(part)
    if (secret) pending.push(parsed(secret.plaintext))
    else if (typeof part === 'string' || typeof part === 'number') {
      const text = String(part)
      if (text.length >= minTextLength) found.add(text)
    } else for (const [, inner] of entriesOf(part)) pending.push(inner)
  }
}

/** Pulumi stores a secret in plain text as JSON. */
function parsed(plaintext: unknown): unknown {
  try {
    return JSON.parse(String(plaintext))
  } catch {
    return plaintext
  }
}

function hasText(value: unknown, { texts: { all, long }, isRoot = false }: Marks): boolean {
  if (all.size === 0) return false
  if (typeof value === 'string' || typeof value === 'number') {
    const found = String(value)
    return all.has(found) || long.some(text => found.includes(text))
  }
  return !isRoot && isJsonObject(value) && Object.keys(value).some(key => all.has(key))
}

/** One entry of `sensitive_attributes`: `[{ type: 'get_attr', value: 'password' }, { type: 'index', value: { value: 0 } }]`. What follows a step of no known form is left out. */
function pathOfSteps(steps: unknown): string[] {
  const path: string[] = []
  for (const step of Array.isArray(steps) ? steps : []) {
    const { value } = Object(step) as { readonly value?: unknown }
    const key = isJsonObject(value) ? value.value : value
    if (typeof key !== 'string' && typeof key !== 'number') break
    path.push(String(key))
  }
  return path
}

function markOf(paths: readonly (readonly string[])[]): Mark {
  const root: Mark = { isSensitive: false, next: new Map() }
  for (const path of paths) {
    let mark = root
    for (const step of path) {
      const next: Mark = mark.next.get(step) ?? { isSensitive: false, next: new Map() }
      mark.next.set(step, next)
      mark = next
    }
    mark.isSensitive = true
  }
  return root
}

function hasMark(marks: ReadonlySet<Mark>, matches: (mark: Mark) => boolean): boolean {
  for (const mark of marks) if (matches(mark)) return true
  return false
}

function nextMarks(marks: ReadonlySet<Mark>, step: string): ReadonlySet<Mark> {
  const found = new Set<Mark>()
  for (const mark of marks) {
    const next = mark.next.get(step)
    if (next) found.add(next)
  }
  return found.size > 0 ? found : nothing
}

const types = new Set(['string', 'number', 'bool', 'dynamic'])
const typeConstructors = new Set(['object', 'tuple', 'list', 'set', 'map'])

/**
 * Whether this is how an attribute without a type in the schema is stored, such as `input` of terraform_data: with the type of its value, which paths in
 * `sensitive_attributes` leave out. An object with such attributes is the same, so that steps are looked for with and without `value`.
 */
function isTyped(value: unknown): value is { readonly value: unknown; readonly type: unknown } {
  if (!isJsonObject(value) || !Object.hasOwn(value, 'value') || !Object.hasOwn(value, 'type') || Object.keys(value).length !== 2)
    return false
  const { type } = value
  return Array.isArray(type) ? typeConstructors.has(type[0] as string) : types.has(type as string)
}

/** A secret of Pulumi, encrypted or in plain text, or another special value of which it is not known that it is none. */
const isSecret = (value: unknown): boolean =>
  secretOf(value) !== undefined || (isJsonObject(value) && Object.hasOwn(value, signatureKey) && !isPlainSpecialValue(value))

const entriesOf = (value: unknown): [step: string | number, part: unknown][] =>
  Array.isArray(value) ? [...value.entries()] : isJsonObject(value) ? Object.entries(value) : []
