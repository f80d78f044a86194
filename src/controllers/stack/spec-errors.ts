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
  if (spec.engine === 'ansible' && !spec.ansible) {
    causes.push(requiredValue('spec.ansible.playbooks', 'engine ansible requires a playbook of the source, such as ["site.yml"]'))
  }
  for (const [section, engines] of [
    ['command', ['command']],
    ['manifests', ['manifests']],
    ['terraform', ['terraform', 'opentofu']],
    ['pulumi', ['pulumi']],
    ['ansible', ['ansible']],
  ] as const) {
    if (spec[section] !== undefined && !(engines as readonly string[]).includes(spec.engine)) {
      causes.push(forbiddenField(`spec.${section}`, `only allowed for engine ${engines.join(' or ')}, got engine ${spec.engine}`))
    }
  }
  causes.push(...pulumiErrors(spec))
  return causes
}

function pulumiErrors({ pulumi }: StackSpec): StatusCause[] {
  if (!pulumi) return []
  const causes: StatusCause[] = []
  const { targets, targetDependents, policyPacks = [], pendingCreates = 'Stop', importPendingCreates } = pulumi
  if (targetDependents && !targets)
    causes.push(forbiddenField('spec.pulumi.targetDependents', 'only allowed with spec.pulumi.targets: name the resources, or remove it'))
  if (importPendingCreates && pendingCreates === 'Stop')
    causes.push(
      forbiddenField(
        'spec.pulumi.importPendingCreates',
        'only allowed with spec.pulumi.pendingCreates Import or Clear: set it, or remove the list',
      ),
    )
  if (pendingCreates === 'Import' && !importPendingCreates)
    causes.push(
      requiredValue('spec.pulumi.importPendingCreates', 'pendingCreates Import requires the URN and the ID of a resource to import'),
    )
  for (const [index, path] of policyPacks.entries()) {
    const isInside = !path.startsWith('/') && !path.split('/').includes('..')
    if (!isInside)
      causes.push(
        invalidValue(`spec.pulumi.policyPacks[${index}]`, path, 'it must be a path in the source, relative to its root and without ".."'),
      )
  }
  return causes
}
