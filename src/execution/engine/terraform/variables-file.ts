import type { Json } from '../../../kubernetes/object/index.ts'
import { EngineError } from '../engine-error.ts'

export type VariablesFile = { text: string; variableOfLine(line: number): string | undefined; omitted: string[] }

/**
 * The content of a `.tfvars.json` file with one variable per line, so that the line of a Terraform error identifies a variable.
 * An undeclared variable in the Stack's own `spec.variables` (`explicit`) is an error; one from a Secret, a ConfigMap or the outputs of another
 * Stack is omitted.
 * @throws {EngineError} InvalidConfiguration, naming the undeclared variables and the declared ones.
 */
export function variablesFile(variables: Record<string, Json>, declared: ReadonlySet<string>, explicit: readonly string[]): VariablesFile {
  const unknown = explicit.filter(name => Object.hasOwn(variables, name) && !declared.has(name)).sort()
  if (unknown.length > 0) {
    const known = [...declared].sort()
    const declaredNames = known.join(', ') || 'none'
    const them = unknown.length > 1 ? 'them' : 'it'
    const fields = unknown.map(name => `spec.variables.${name}`).join(', ')
    throw new EngineError(
      'InvalidConfiguration',
      `${fields} ${unknown.length > 1 ? 'are' : 'is'} not declared in the configuration (declared: ${declaredNames}); declare ${them} or remove ${them} from the Stack`,
      { retryable: false },
    )
  }
  const names = Object.keys(variables).filter(name => declared.has(name))
  const lines = names.map(name => `${JSON.stringify(name)}: ${JSON.stringify(variables[name])}`)
  return {
    text: `{\n${lines.join(',\n')}\n}\n`,
    variableOfLine: line => names[line - 2],
    omitted: Object.keys(variables).filter(name => !declared.has(name)),
  }
}
