import type { StructuralSchema, ValidationRule } from '../object/structural-schema.ts'
import { compileExpression, type Expression } from './expression.ts'
import { fieldPathOf } from './field-path.ts'
import { typeOfSchema } from './schema-types.ts'
import { type CelType, optional } from './types.ts'

/** A compiled rule. `message` is its messageExpression. */
export type CompiledRule = {
  readonly rule: ValidationRule
  /** The compile error instead of the program, in a definition that was stored before its rules were checked. */
  readonly program: Expression | string
  readonly message: Expression | undefined
  readonly usesOldSelf: boolean
  /** The field of an error, relative to that of the rule. */
  readonly fieldPath: string
}

/** The rules of a schema and of its children; parts without rules are omitted. */
export type RuleTree = {
  readonly schema: StructuralSchema
  /** True for a whole object or an embedded one. */
  readonly isResource: boolean
  readonly rules: readonly CompiledRule[]
  readonly items: RuleTree | undefined
  readonly values: RuleTree | undefined
  readonly properties: ReadonlyMap<string, RuleTree> | undefined
}

const trees = new WeakMap<StructuralSchema, RuleTree | false>()

/** The rules in the schema of a whole object, compiled once; undefined if there are none. */
export function rulesOf(schema: StructuralSchema): RuleTree | undefined {
  let tree = trees.get(schema)
  if (tree === undefined) {
    tree = compileTree(schema, true) ?? false
    trees.set(schema, tree)
  }
  return tree || undefined
}

function compileTree(schema: StructuralSchema, isResource: boolean): RuleTree | undefined {
  const below = (part: StructuralSchema) => compileTree(part, part['x-kubernetes-embedded-resource'] === true)
  const { items, additionalProperties } = schema
  const properties = new Map<string, RuleTree>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const tree = below(property)
    if (tree) properties.set(name, tree)
  }
  const rules = compileRules(schema, isResource)
  const tree = {
    schema,
    isResource,
    rules,
    items: items && below(items),
    values: typeof additionalProperties === 'object' ? below(additionalProperties) : undefined,
    properties: properties.size > 0 ? properties : undefined,
  }
  return rules.length > 0 || tree.items || tree.values || tree.properties ? tree : undefined
}

/** The rules of one schema, without its children. */
function compileRules(schema: StructuralSchema, isResource: boolean): CompiledRule[] {
  const rules = schema['x-kubernetes-validations'] ?? []
  if (rules.length === 0) return []
  const self = typeOfSchema(schema, isResource)
  // Kubernetes ignores rules on values that have no type in CEL.
  if (!self) return []
  return rules.filter(({ rule }) => typeof rule === 'string' && rule.trim() !== '').map(rule => compileRule(rule, schema, self))
}

/** Compiles the rule and its messageExpression; `messageIssue` is why the latter is invalid. */
export function compileRule(rule: ValidationRule, schema: StructuralSchema, self: CelType): CompiledRule & { messageIssue?: string } {
  const variables = new Map([
    ['self', self],
    ['oldSelf', rule.optionalOldSelf ? optional(self) : self],
  ])
  const fieldPath = rule.fieldPath ? (fieldPathOf(rule.fieldPath, schema) ?? '') : ''
  const compiled = compileExpression(rule.rule, variables)
  const program = typeof compiled === 'string' ? compiled.replace(/^instantiation/, 'program instantiation') : compiled
  if (typeof program === 'string') return { rule, program, message: undefined, usesOldSelf: false, fieldPath }
  const usesOldSelf = program.used.has('oldSelf')
  if (program.type !== 'bool')
    return { rule, program: 'cel expression must evaluate to a bool', message: undefined, usesOldSelf, fieldPath }
  const parts = { rule, program, message: undefined, usesOldSelf, fieldPath }
  if (!rule.messageExpression) return parts
  const message = compileExpression(rule.messageExpression, variables)
  if (typeof message === 'string') return { ...parts, messageIssue: `messageExpression ${message}` }
  if (message.type !== 'string') return { ...parts, messageIssue: 'messageExpression must evaluate to a string' }
  return { ...parts, message }
}
