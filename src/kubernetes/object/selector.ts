import { invalidValue } from './field-cause.ts'
import { labelValueErrors, qualifiedNameErrors } from './names.ts'
import { badRequest, type StatusCause } from './status-error.ts'

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt'
export type LabelRequirement = { key: string; operator: LabelOperator; values: string[] }
/** All requirements must be met; without any it selects everything. */
export type LabelSelector = { requirements: LabelRequirement[] }

/** The `LabelSelector` object of specs such as `spec.selector`. */
export type LabelSelectorObject = {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

/** Every object of a list is matched against each of them. */
const maxRequirements = 64

function tooManyRequirements(of: string): Error {
  return badRequest(`a ${of} selector must have at most ${maxRequirements} requirements`)
}

type Token = { kind: 'word' | 'symbol' | 'error' | 'end'; text: string }

const symbols = new Set([')', ',', '!', '==', '=', '>', '<', '!=', '('])
const specialCharacters = '=!(),><'
const blank = /[ \t\r\n]/

function scan(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const character = text[at]!
    if (blank.test(character)) {
      at++
      continue
    }
    const start = at
    if (specialCharacters.includes(character)) {
      let end = at + 1
      while (end < text.length && symbols.has(text.slice(start, end + 1))) end++
      at = end
      tokens.push({ kind: symbols.has(text.slice(start, end)) ? 'symbol' : 'error', text: text.slice(start, end) })
      continue
    }
    while (at < text.length && !specialCharacters.includes(text[at]!) && !blank.test(text[at]!)) at++
    tokens.push({ kind: 'word', text: text.slice(start, at) })
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}

/**
 * Parses kubectl's selector syntax: `a=b, c!=d, e in (x,y), f notin (z), g, !h, i>1`.
 * `==` and `=` become `In` with one value, `!=` becomes `NotIn`.
 * @throws {StatusError} BadRequest, in Kubernetes' words.
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tokens = scan(text)
  const requirements: LabelRequirement[] = []
  let at = 0
  const peek = () => tokens[at]!
  const take = () => (tokens[at]!.kind === 'end' ? tokens[at]! : tokens[at++]!)
  const isSymbol = (token: Token, symbol: string) => token.kind === 'symbol' && token.text === symbol
  const startsRequirement = (token: Token) => token.kind === 'word' || isSymbol(token, '!')
  const invalid = (why: string) => badRequest(`unable to parse requirement: ${why}`)

  const readValues = (): string[] => {
    const open = take()
    if (!isSymbol(open, '(')) throw invalid(`found '${open.text}' expected: '('`)
    const values = new Set<string>()
    if (isSymbol(peek(), ')')) {
      take()
      return []
    }
    for (;;) {
      // Nothing between commas or parentheses is the empty value.
      if (peek().kind === 'word') values.add(take().text)
      else if (isSymbol(peek(), ',') || isSymbol(peek(), ')')) values.add('')
      else throw invalid(`found '${peek().text}', expected: ',', or identifier`)
      const next = take()
      if (isSymbol(next, ')')) return [...values].sort()
      if (!isSymbol(next, ',')) throw invalid(`found '${next.text}', expected: ',' or ')'`)
    }
  }

  const readRequirement = (): LabelRequirement => {
    const isNegated = isSymbol(peek(), '!')
    if (isNegated) take()
    const name = take()
    if (name.kind !== 'word') throw invalid(`found '${name.text}', expected: identifier`)
    const key = name.text
    const keyErrors = qualifiedNameErrors(key)
    if (keyErrors.length > 0) throw invalid(`<nil>: Invalid value: ${JSON.stringify(key)}: ${keyErrors.join('; ')}`)
    const isLast = peek().kind === 'end' || isSymbol(peek(), ',')
    if (isNegated && !isLast) throw badRequest(`found '${peek().text}', expected: ',' or 'end of string'`)
    if (isNegated) return { key, operator: 'DoesNotExist', values: [] }
    if (isLast) return { key, operator: 'Exists', values: [] }

    const sign = take()
    const operator = binaryOperators[sign.text]
    if (operator === undefined) throw invalid(`found '${sign.text}', expected: in, notin, =, ==, !=, gt, lt`)
    let values: string[]
    if (sign.kind === 'word') values = readValues()
    else if (peek().kind === 'end' || isSymbol(peek(), ',')) values = ['']
    else {
      const value = take()
      if (value.kind !== 'word') throw invalid(`found '${value.text}', expected: identifier`)
      values = [value.text]
    }
    const [cause] = requirementErrors({ key, operator, values })
    if (cause) throw invalid(`${cause.field}: ${cause.message}`)
    return { key, operator, values }
  }

  while (peek().kind !== 'end') {
    if (!startsRequirement(peek())) throw badRequest(`found '${peek().text}', expected: !, identifier, or 'end of string'`)
    requirements.push(readRequirement())
    if (requirements.length > maxRequirements) throw tooManyRequirements('label')
    const next = take()
    if (next.kind === 'end') break
    if (!isSymbol(next, ',')) throw badRequest(`found '${next.text}', expected: ',' or 'end of string'`)
    if (!startsRequirement(peek())) throw badRequest(`found '${peek().text}', expected: identifier after ','`)
  }
  return { requirements }
}

const binaryOperators: Record<string, LabelOperator> = Object.assign(Object.create(null), {
  in: 'In',
  notin: 'NotIn',
  '=': 'In',
  '==': 'In',
  '!=': 'NotIn',
  '>': 'Gt',
  '<': 'Lt',
})

function requirementErrors({ key, operator, values }: LabelRequirement): StatusCause[] {
  if ((operator === 'In' || operator === 'NotIn') && values.length === 0) {
    return [invalidValue('values', values, "for 'in', 'notin' operators, values set can't be empty")]
  }
  if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) {
    return [invalidValue('values', values, 'values set must be empty for exists and does not exist')]
  }
  if (operator === 'Gt' || operator === 'Lt') {
    if (values.length !== 1) return [invalidValue('values', values, "for 'Gt', 'Lt' operators, exactly one value is required")]
    if (!isInteger(values[0]!)) {
      return [invalidValue('values[0]', values[0], "for 'Gt', 'Lt' operators, the value must be an integer")]
    }
  }
  return values.flatMap((value, index) => {
    const errors = labelValueErrors(value)
    return errors.length > 0 ? [invalidValue(`values[${index}][${key}]`, value, errors.join('; '))] : []
  })
}

const isInteger = (text: string) => /^[+-]?[0-9]{1,19}$/.test(text)

/** Formats a selector in kubectl's syntax, which {@link parseLabelSelector} parses. */
export function formatLabelSelector(selector: LabelSelector): string {
  return selector.requirements.map(formatRequirement).join(',')
}

function formatRequirement({ key, operator, values }: LabelRequirement): string {
  switch (operator) {
    case 'Exists':
      return key
    case 'DoesNotExist':
      return `!${key}`
    case 'Gt':
      return `${key}>${values[0]}`
    case 'Lt':
      return `${key}<${values[0]}`
    case 'In':
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in (${values.join(',')})`
    case 'NotIn':
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} notin (${values.join(',')})`
  }
}

/** True if `labels` meet every requirement. An absent label meets `NotIn`, but not `In`, `Gt` and `Lt`. */
export function matchesLabels(selector: LabelSelector, labels?: Readonly<Record<string, string>>): boolean {
  for (const { key, operator, values } of selector.requirements) {
    const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined
    switch (operator) {
      case 'Exists':
        if (value === undefined) return false
        break
      case 'DoesNotExist':
        if (value !== undefined) return false
        break
      case 'In':
        if (value === undefined || !holds(values, value)) return false
        break
      case 'NotIn':
        if (value !== undefined && holds(values, value)) return false
        break
      default: {
        if (value === undefined || !isInteger(value)) return false
        const [left, right] = [BigInt(value.replace('+', '')), BigInt(values[0]!.replace('+', ''))]
        if (operator === 'Gt' ? left <= right : left >= right) return false
      }
    }
  }
  return true
}

const sets = new WeakMap<readonly string[], ReadonlySet<string>>()

// A short list is searched faster than a set.
function holds(values: readonly string[], value: string): boolean {
  if (values.length <= 8) return values.includes(value)
  let set = sets.get(values)
  if (!set) {
    set = new Set(values)
    sets.set(values, set)
  }
  return set.has(value)
}

/**
 * Converts a spec's `LabelSelector` object; an empty object selects everything.
 * @throws {StatusError} BadRequest naming an invalid operator or value.
 */
export function labelSelectorFromObject(object: LabelSelectorObject): LabelSelector {
  const requirements: LabelRequirement[] = Object.entries(object.matchLabels ?? {}).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }))
  for (const { key, operator, values = [] } of object.matchExpressions ?? []) {
    if (operator !== 'In' && operator !== 'NotIn' && operator !== 'Exists' && operator !== 'DoesNotExist') {
      throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`)
    }
    requirements.push({ key, operator, values: [...values] })
  }
  for (const requirement of requirements) {
    const keyErrors = qualifiedNameErrors(requirement.key)
    if (keyErrors.length > 0) throw badRequest(`key: Invalid value: ${JSON.stringify(requirement.key)}: ${keyErrors.join('; ')}`)
    const [cause] = requirementErrors(requirement)
    if (cause) throw badRequest(`${cause.field}: ${cause.message}`)
  }
  return { requirements }
}

export type FieldRequirement = { field: string; operator: '=' | '!='; value: string }
/** All requirements must be met; without any it selects everything. */
export type FieldSelector = { requirements: FieldRequirement[] }

/**
 * Parses `metadata.name=a,spec.b!=c`; `==` is `=`. A backslash escapes `,`, `=` and backslashes in a value.
 * @throws {StatusError} BadRequest, in Kubernetes' words. The caller checks whether the fields are selectable.
 */
export function parseFieldSelector(text: string): FieldSelector {
  const requirements: FieldRequirement[] = []
  for (const term of splitTerms(text)) {
    if (term === '') continue
    const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
    if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    if (requirements.length === maxRequirements) throw tooManyRequirements('field')
    requirements.push({ field: match[1]!, operator: match[2] === '!=' ? '!=' : '=', value: unescapeValue(match[3]!) })
  }
  return { requirements }
}

function splitTerms(text: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === ',') {
      terms.push(text.slice(start, at))
      start = at + 1
    }
  }
  return [...terms, text.slice(start)]
}

function unescapeValue(value: string): string {
  if (!/[\\,=]/.test(value)) return value
  let result = ''
  for (let at = 0; at < value.length; at++) {
    const character = value[at]!
    if (character === '\\') {
      const next = value[++at]
      if (next !== '\\' && next !== ',' && next !== '=') {
        throw badRequest(`invalid field selector: invalid escape sequence: \\${next ?? ''}`)
      }
      result += next
    } else if (character === ',' || character === '=') {
      throw badRequest(`invalid field selector: unescaped character in value: ${character}`)
    } else result += character
  }
  return result
}

/** Formats a selector in the syntax of {@link parseFieldSelector}. */
export function formatFieldSelector(selector: FieldSelector): string {
  return selector.requirements.map(({ field, operator, value }) => `${field}${operator}${value.replace(/[\\,=]/g, '\\$&')}`).join(',')
}

/** True if the values that `read` returns meet every requirement; an absent field counts as the empty string. */
export function matchesFields(selector: FieldSelector, read: (field: string) => string | undefined): boolean {
  for (const { field, operator, value } of selector.requirements) {
    if (((read(field) ?? '') === value) !== (operator === '=')) return false
  }
  return true
}
