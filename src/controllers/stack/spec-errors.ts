import type { StackSpec } from '../../api/index.ts'
import { forbiddenField, invalidValue, requiredValue, type StatusCause } from '../../kubernetes/object/index.ts'

const froms = ['stackRef', 'secretRef', 'configMapRef'] as const

/** What is wrong with a Stack's spec beyond what its schema can say. Sources are checked by `workspace/`. */
export function specErrors(spec: StackSpec): StatusCause[] {
  const causes: StatusCause[] = []
  for (const [index, entry] of (spec.variablesFrom ?? []).entries()) {
    const field = `spec.variablesFrom[${index}]`
    const given = froms.filter(name => entry[name] !== undefined)
    if (given.length === 0) causes.push(requiredValue(field, `exactly one of ${froms.join(', ')} is needed`))
    else if (given.length > 1) {
      causes.push(forbiddenField(field, `exactly one of ${froms.join(', ')} is allowed, got ${given.join(' and ')}; make them two entries`))
    }
  }
  for (const [index, { name, value, secretKeyRef }] of (spec.env ?? []).entries()) {
    const field = `spec.env[${index}]`
    if (value === undefined && !secretKeyRef) causes.push(requiredValue(field, `variable ${name} needs a value or a secretKeyRef`))
    if (value !== undefined && secretKeyRef)
      causes.push(forbiddenField(field, `variable ${name} has both value and secretKeyRef; keep one`))
    if (name.startsWith('OARLOCK_')) causes.push(invalidValue(`${field}.name`, name, 'names that start with OARLOCK_ are set by Oarlock'))
  }
  if (spec.engine === 'command' && !spec.command?.apply) {
    causes.push(requiredValue('spec.command.apply', 'engine command needs a program to apply with, such as ["./apply.sh"]'))
  }
  for (const [section, engines] of [
    ['command', ['command']],
    ['manifests', ['manifests']],
    ['terraform', ['terraform', 'opentofu']],
  ] as const) {
    if (spec[section] !== undefined && !(engines as readonly string[]).includes(spec.engine)) {
      causes.push(forbiddenField(`spec.${section}`, `only for engine ${engines.join(' or ')}, this Stack has engine ${spec.engine}`))
    }
  }
  return causes
}
