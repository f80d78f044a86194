import { forbiddenField, invalidValue, requiredValue, unsupportedValue } from '../object/field-cause.ts'
import { isJsonObject } from '../object/json.ts'
import type { StatusCause } from '../object/status-error.ts'
import type { StructuralSchema, ValidationRule } from '../object/structural-schema.ts'
import { compileRule } from './compile-rules.ts'
import { fieldPathOf } from './field-path.ts'
import { typeOfSchema } from './schema-types.ts'

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

/** Compiling a definition blocks other requests: this many characters of rules take about 50 ms. */
const maxSource = 50_000

/**
 * Why the `x-kubernetes-validations` in the schema of a definition are invalid; empty if they are valid. A schema that is
 * not structural may have any shape; then only the syntax of rules is checked.
 */
export function ruleErrors(schema: StructuralSchema, path: string, isStructural: boolean): StatusCause[] {
  const found: { rule: ValidationRule; schema: StructuralSchema; at: string; isResource: boolean; uncorrelatable: string | undefined }[] =
    []
  collect(schema, path, true, undefined)
  const causes = found.flatMap(({ rule, schema: around, at }) => formErrors(rule, around, at))
  // Rules are compiled only if all of them are well-formed, so that errors refer to what the user wrote.
  if (causes.length > 0 || !isStructural) return causes
  const source = found.reduce((sum, { rule }) => sum + rule.rule.length + (rule.messageExpression?.length ?? 0), 0)
  if (source > maxSource) {
    return [
      forbiddenField(path, `x-kubernetes-validations: the rules of a schema must have at most ${maxSource} characters, got ${source}`),
    ]
  }
  for (const { rule, schema: around, at, isResource, uncorrelatable } of found) {
    const self = typeOfSchema(around, isResource)
    if (!self) continue
    const { program, messageIssue, usesOldSelf } = compileRule(rule, around, self)
    if (typeof program === 'string') causes.push(invalidRule(`${at}.rule`, rule, program))
    if (messageIssue !== undefined) causes.push(invalidRule(`${at}.messageExpression`, rule, messageIssue))
    if (usesOldSelf && uncorrelatable !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`
      causes.push(invalidValue(`${at}.rule`, rule.rule, why))
    }
    if (!usesOldSelf && rule.optionalOldSelf !== undefined) {
      causes.push(invalidValue(`${at}.optionalOldSelf`, rule.optionalOldSelf, 'may not be set if oldSelf is not used in rule'))
    }
  }
  return causes

  function collect(part: StructuralSchema, at: string, isResource: boolean, uncorrelatable: string | undefined): void {
    const rules: unknown = part['x-kubernetes-validations']
    for (const [index, rule] of (Array.isArray(rules) ? rules : []).entries()) {
      found.push({ rule, schema: part, at: `${at}.x-kubernetes-validations[${index}]`, isResource, uncorrelatable })
    }
    const { items, additionalProperties, properties } = part
    const below = (child: unknown, childAt: string, blocked: string | undefined) => {
      if (isJsonObject(child)) collect(child, childAt, child['x-kubernetes-embedded-resource'] === true, blocked)
    }
    for (const [name, property] of Object.entries(isJsonObject(properties) ? properties : {}))
      below(property, `${at}.properties[${name}]`, uncorrelatable)
    below(additionalProperties, `${at}.additionalProperties`, uncorrelatable)
    below(items, `${at}.items`, uncorrelatable ?? (part['x-kubernetes-list-type'] === 'map' ? undefined : at))
  }
}

function formErrors(given: unknown, schema: StructuralSchema, at: string): StatusCause[] {
  if (!isJsonObject(given)) return [invalidValue(at, given, 'must be an object')]
  const causes: StatusCause[] = []
  for (const name of ['rule', 'message', 'messageExpression', 'reason', 'fieldPath']) {
    if (given[name] !== undefined && typeof given[name] !== 'string')
      causes.push(invalidValue(`${at}.${name}`, given[name], 'must be a string'))
  }
  if (given.optionalOldSelf !== undefined && typeof given.optionalOldSelf !== 'boolean') {
    causes.push(invalidValue(`${at}.optionalOldSelf`, given.optionalOldSelf, 'must be a boolean'))
  }
  if (causes.length > 0) return causes
  const { rule = '', message = '', messageExpression = '', reason, fieldPath = '' } = given as Partial<ValidationRule>
  if (rule.trim() === '') causes.push(requiredValue(`${at}.rule`, 'rule is not specified'))
  else if (message !== '' && message.trim() === '') causes.push(invalidValue(`${at}.message`, message, 'must be non-empty if specified'))
  else if (message.trim().includes('\n')) causes.push(invalidValue(`${at}.message`, message, 'must not contain line breaks'))
  else if (rule.trim().includes('\n') && message === '') {
    causes.push(requiredValue(`${at}.message`, 'message must be specified if rule contains line breaks'))
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    causes.push(requiredValue(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'))
  }
  if (reason !== undefined && !reasons.includes(reason)) causes.push(unsupportedValue(`${at}.reason`, reason, reasons))
  if (fieldPath !== '') {
    if (fieldPath.trim() === '') causes.push(invalidValue(`${at}.fieldPath`, fieldPath, 'must be non-empty if specified'))
    if (fieldPath.includes('\n')) causes.push(invalidValue(`${at}.fieldPath`, fieldPath, 'must not contain line breaks'))
    if (fieldPathOf(fieldPath, schema) === undefined) causes.push(invalidValue(`${at}.fieldPath`, fieldPath, 'must be a valid path'))
  }
  return causes
}

/** Kubernetes quotes the whole rule, with the field names of its Go type and the escapes of its JSON encoder. */
function invalidRule(field: string, given: ValidationRule, why: string): StatusCause {
  const { rule, message = '', messageExpression = '', reason = null, fieldPath = '', optionalOldSelf = null } = given
  const quoted = {
    Rule: rule,
    Message: message,
    MessageExpression: messageExpression,
    Reason: reason,
    FieldPath: fieldPath,
    OptionalOldSelf: optionalOldSelf,
  }
  const escaped = JSON.stringify(quoted).replace(/[<>&]/g, character => `\\u00${character.charCodeAt(0).toString(16)}`)
  return { reason: 'FieldValueInvalid', message: `Invalid value: ${escaped}: ${why}`, field }
}
