import type { RuleTable } from './type-rules.ts'

/** Of the types in a PodSpec. */
export const podRules: RuleTable = {}
