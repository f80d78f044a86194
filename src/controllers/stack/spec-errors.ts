import type { StackSpec } from '../../api/index.ts'
import { forbiddenField, invalidValue, requiredValue, type StatusCause } from '../../kubernetes/object/index.ts'

const variableSources = ['stackRef', 'secretRef', 'configMapRef'] as const

/** Errors in a Stack's spec that its schema cannot express. Sources are checked by `execution/workspace/`. */
export function specErrors(spec: StackSpec): StatusCause[] {
  const causes: StatusCause[] = []
  for (const [index, entry] of (spec.variablesFrom ?? []).entries()) {
    const field = `spec.variablesFrom[${index}]`
    const given = variableSources.filter(name => entry[name] !== undefined)
    if (given.length === 0) causes.push(requiredValue(field, `exactly one of ${variableSources.join(', ')} is required`))
    else if (given.length > 1) {
      causes.push(
        forbiddenField(
          field,
          `an entry takes exactly one of ${variableSources.join(', ')}, got ${given.join(' and ')}; make it two entries`,
        ),
      )
    }
  }
  for (const [index, { name, value, secretKeyRef }] of (spec.env ?? []).entries()) {
    const field = `spec.env[${index}]`
    if (value === undefined && !secretKeyRef) causes.push(requiredValue(field, `variable ${name} requires a value or a secretKeyRef`))
    if (value !== undefined && secretKeyRef)
      causes.push(forbiddenField(field, `variable ${name} has both value and secretKeyRef; keep one`))
    if (name.startsWith('OARLOCK_')) causes.push(invalidValue(`${field}.name`, name, 'names that start with OARLOCK_ are reserved'))
  }
  if (spec.engine === 'command' && !spec.command?.apply) {
    causes.push(requiredValue('spec.command.apply', 'engine command requires a program to apply with, such as ["./apply.sh"]'))
  }
  for (const [section, engines] of [
    ['command', ['command']],
    ['manifests', ['manifests']],
    ['terraform', ['terraform', 'opentofu']],
  ] as const) {
    if (spec[section] !== undefined && !(engines as readonly string[]).includes(spec.engine)) {
      causes.push(forbiddenField(`spec.${section}`, `only allowed for engine ${engines.join(' or ')}, got engine ${spec.engine}`))
    }
  }
  return causes
}
