import type { StackSpec } from '../../api/index.ts'
import { equalJson, isJsonObject, stableJson } from '../../kubernetes/object/index.ts'
import { sha256 } from '../../kubernetes/util/index.ts'

/**
 * What a change of a field of the spec does.
 * - `infrastructure`: a Run, because other resources may result.
 * - `execution`: no Run while the Stack is in sync. A Run that waits, a plan that awaits approval and a Run that failed are replaced: they would use the former value.
 * - `none`: no Run and no plan. The new value is used from then on.
 */
export type SpecEffect = 'infrastructure' | 'execution' | 'none'

/** Every field of the spec by its path. Lists and maps are one field. docs/concepts.md has the same lists. */
export const specEffects: Readonly<Record<string, SpecEffect>> = {
  engine: 'infrastructure',
  'source.inline.files': 'infrastructure',
  'source.path.path': 'infrastructure',
  'source.git.url': 'infrastructure',
  'source.git.branch': 'infrastructure',
  'source.git.tag': 'infrastructure',
  'source.git.commit': 'infrastructure',
  'source.git.directory': 'infrastructure',
  variables: 'infrastructure',
  variablesFrom: 'infrastructure',
  env: 'infrastructure',
  state: 'infrastructure',
  'command.plan': 'infrastructure',
  'command.apply': 'infrastructure',
  'command.destroy': 'infrastructure',
  'command.installDependencies': 'infrastructure',
  'manifests.namespace': 'infrastructure',
  'manifests.prune': 'infrastructure',
  'manifests.kubeconfigSecretRef.name': 'infrastructure',
  'manifests.kubeconfigSecretRef.key': 'infrastructure',
  'pulumi.stack': 'infrastructure',
  'pulumi.targets': 'infrastructure',
  'pulumi.targetDependents': 'infrastructure',
  'pulumi.replace': 'infrastructure',
  'pulumi.policyPacks': 'infrastructure',
  'ansible.playbooks': 'infrastructure',
  'ansible.destroyPlaybook': 'infrastructure',
  'ansible.inventory.text': 'infrastructure',
  'ansible.inventory.hosts': 'infrastructure',
  'ansible.inventory.groups': 'infrastructure',
  'ansible.inventory.path': 'infrastructure',
  'ansible.inventory.variable': 'infrastructure',
  'ansible.tags': 'infrastructure',
  'ansible.skipTags': 'infrastructure',
  'ansible.limit': 'infrastructure',
  'ansible.user': 'infrastructure',
  'ansible.become.enabled': 'infrastructure',
  'ansible.become.user': 'infrastructure',
  'ansible.become.method': 'infrastructure',
  'ansible.requirements': 'infrastructure',

  'source.git.secretRef.name': 'execution',
  'command.installEnvironment': 'execution',
  'manifests.wait': 'execution',
  'manifests.waitTimeout': 'execution',
  'terraform.parallelism': 'execution',
  'terraform.initEnvironment': 'execution',
  'pulumi.refresh': 'execution',
  'pulumi.runProgram': 'execution',
  'pulumi.parallel': 'execution',
  'pulumi.continueOnError': 'execution',
  'pulumi.pendingCreates': 'execution',
  'pulumi.importPendingCreates': 'execution',
  'pulumi.approvalBinding': 'execution',
  'pulumi.installEnvironment': 'execution',
  'ansible.forks': 'execution',
  'ansible.verbosity': 'execution',
  'ansible.check': 'execution',
  'ansible.checkAfterApply': 'execution',
  'ansible.become.passwordSecretRef.name': 'execution',
  'ansible.become.passwordSecretRef.key': 'execution',
  'ansible.vaultPasswords': 'execution',
  'ansible.privateKeySecretRef.name': 'execution',
  'ansible.privateKeySecretRef.key': 'execution',
  'ansible.hostKeyChecking': 'execution',
  'ansible.knownHosts': 'execution',
  'ansible.installEnvironment': 'execution',
  'ansible.callbacks': 'execution',
  'ansible.approvalBinding': 'execution',
  timeout: 'execution',
  'isolation.level': 'execution',
  'isolation.network': 'execution',
  'resources.cpu': 'execution',
  'resources.memory': 'execution',
  'resources.pids': 'execution',
  'resources.disk': 'execution',
  'resources.autoRaise.memory': 'execution',
  pool: 'execution',
  serviceAccountName: 'execution',
  'placement.workerLabels': 'execution',
  'placement.engineVersion': 'execution',
  priorityClass: 'execution',
  priority: 'execution',
  concurrencyKey: 'execution',
  concurrencyLimit: 'execution',

  'source.interval': 'none',
  dependsOn: 'none',
  approval: 'none',
  drift: 'none',
  interval: 'none',
  suspend: 'none',
  deletion: 'none',
  deletionProtection: 'none',
  'retry.limit': 'none',
  'retry.initial': 'none',
  'retry.max': 'none',
  onChange: 'none',
  historyLimit: 'none',
}

/** How much two specs must have in common: `infrastructure` to have the same result, `execution` to run in the same way too. */
export type SpecScope = 'infrastructure' | 'execution'

const paths = Object.entries(specEffects).map(([path, effect]) => ({ keys: path.split('.'), effect }))
const pathsOf: Readonly<Record<SpecScope, readonly (readonly string[])[]>> = {
  infrastructure: paths.filter(({ effect }) => effect === 'infrastructure').map(({ keys }) => keys),
  execution: paths.filter(({ effect }) => effect !== 'none').map(({ keys }) => keys),
}

/** Whether the specs differ only in fields outside of `scope`. */
export function isSameSpec(a: StackSpec, b: StackSpec, scope: SpecScope): boolean {
  return a === b || pathsOf[scope].every(keys => equalJson(valueAt(a, keys), valueAt(b, keys)))
}

/** Equal for specs that are the same in `scope`. */
export function specDigest(spec: StackSpec, scope: SpecScope): string {
  const values: [string, unknown][] = []
  for (const keys of pathsOf[scope]) {
    const value = valueAt(spec, keys)
    if (value !== undefined) values.push([keys.join('.'), value])
  }
  return `sha256:${sha256(stableJson(values))}`
}

/** The spec with those fields of `applied` that affect the infrastructure, and its own other fields. */
export function withInfrastructureOf(spec: StackSpec, applied: StackSpec): StackSpec {
  let result: unknown = spec
  for (const keys of pathsOf.infrastructure) if (keys[0] !== 'source') result = withValueAt(result, keys, valueAt(applied, keys))
  return { ...(result as StackSpec), source: withRepositoryOf(spec.source, applied.source) }
}

/** The applied source. The Secret for its repository is the present one: credentials are renewed. */
function withRepositoryOf({ interval, git }: StackSpec['source'], applied: StackSpec['source']): StackSpec['source'] {
  const { interval: _, ...source } = applied
  const secretRef = source.git && source.git.url === git?.url ? { secretRef: git?.secretRef } : undefined
  return withoutUndefined({ ...source, interval, ...(secretRef && { git: withoutUndefined({ ...source.git!, ...secretRef }) }) })
}

function withoutUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
}

/** A copy of `object` with `value` at the path; undefined removes it, and objects that become empty. */
function withValueAt(object: unknown, [key = '', ...rest]: readonly string[], value: unknown): unknown {
  const before = isJsonObject(object) ? object : {}
  const next = rest.length === 0 ? value : withValueAt(before[key], rest, value)
  if (next !== undefined) return { ...before, [key]: next }
  const { [key]: _, ...others } = before
  return Object.keys(others).length === 0 ? undefined : others
}

function valueAt(spec: StackSpec, keys: readonly string[]): unknown {
  let value: unknown = spec
  for (const key of keys) {
    if (!isJsonObject(value)) return undefined
    value = value[key]
  }
  return value
}
