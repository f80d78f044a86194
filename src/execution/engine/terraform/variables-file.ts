import type { Json } from '../../../kubernetes/object/index.ts'
import { EngineError } from '../engine-error.ts'

export type VariablesFile = { text: string; variableOfLine(line: number): string | undefined; left: string[] }

/**
 * The content of a `.tfvars.json` file with one variable per line, so that a finding of Terraform in it names a variable.
 * A variable of the Stack's own `spec.variables` that nobody declares is a mistake; one that came along with a Secret, a ConfigMap or the
 * outputs of another Stack is left out (`left`).
 * @throws {EngineError} InvalidConfiguration, naming the undeclared variables and the declared ones.
 */
export function variablesFile(variables: Record<string, Json>, declared: ReadonlySet<string>, explicit: readonly string[]): VariablesFile {
  const unknown = explicit.filter(name => Object.hasOwn(variables, name) && !declared.has(name)).sort()
  if (unknown.length > 0) {
    const known = [...declared].sort()
    const says = known.length > 0 ? `it declares ${known.join(', ')}` : 'it declares none'
    const them = unknown.map(name => `spec.variables.${name}`).join(', ')
    throw new EngineError(
      'InvalidConfiguration',
      `${them} ${unknown.length > 1 ? 'are' : 'is'} not declared by the configuration: ${says}; add a variable block or remove ${unknown.length > 1 ? 'them' : 'it'}`,
      { retryable: false },
    )
  }
  const names = Object.keys(variables).filter(name => declared.has(name))
  const lines = names.map(name => `${JSON.stringify(name)}: ${JSON.stringify(variables[name])}`)
  return {
    text: `{\n${lines.join(',\n')}\n}\n`,
    variableOfLine: line => names[line - 2],
    left: Object.keys(variables).filter(name => !declared.has(name)),
  }
}
