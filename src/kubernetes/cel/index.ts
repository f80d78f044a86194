/**
 * @module kubernetes/cel: Kubernetes' expression language. Start reading at `expression.ts`, then `rules.ts`.
 * In: an expression, the types of its variables, JSON values. Out: a program, or compile errors in cel-go's words; the
 * causes for which the `x-kubernetes-validations` of a schema reject an object.
 * Stages: `lex` → `parse` → `check` → `evaluate` (with `comprehension`). The table in `declarations.ts` declares the functions, `functions/`
 * implements them. The cost limit of `../object/cost-limit.ts` bounds every evaluation.
 * Out of scope: protobuf messages, and the `authorizer` of admission policies.
 */
export { compileExpression, type Expression } from './expression.ts'
export { ruleErrors } from './rule-errors.ts'
export { checkRules, type RuleResult } from './rules.ts'
