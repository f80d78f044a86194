/**
 * @module kube/cel: Kubernetes' expression language. Start reading at `expression.ts`, then `rules.ts`.
 * In: an expression, the types of its variables, JSON values. Out: a program, or what is wrong in cel-go's words; the
 * verdict of the `x-kubernetes-validations` of a schema on an object.
 * The way of an expression: `lex` → `parse` → `check` → `evaluate`; what may be called is the table in `declarations.ts`,
 * how it works is in `functions/`. Evaluating is bounded by the steps of `../object/cost-limit.ts`, whatever the expression.
 * Not here: protobuf messages, and the `authorizer` of admission policies.
 */
export { compileExpression, type Expression } from './expression.ts'
export { ruleErrors } from './rule-errors.ts'
export { checkRules, type RuleResult } from './rules.ts'
