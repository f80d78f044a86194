import { chargeCost } from '../object/cost-limit.ts'
import { CelError, noSuchOverload, Uint, type Value } from './values.ts'

/** The variables of one evaluation. Comprehensions append theirs; compiled code accesses them by index. */
export type Activation = Value[]

/** A compiled expression. It throws {@link CelError}, and CostLimitExceededError. */
export type Program = (activation: Activation) => Value

/** The value of a program, or its error. */
export function attempt(program: Program, activation: Activation): Value | CelError {
  try {
    return program(activation)
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    // An error costs as much as about 100 nodes.
    chargeCost(100)
    return error
  }
}

/** Evaluates a condition. @throws {CelError} if its value is not a bool. */
export function evaluateCondition(condition: Program, activation: Activation): boolean {
  const value = condition(activation)
  if (typeof value !== 'boolean') throw noSuchOverload()
  return value
}

/** A key or index as in error messages. */
export function formatKey(key: Value): string {
  return key instanceof Uint ? String(key.value) : typeof key === 'object' ? 'of an unsupported type' : String(key)
}
