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
  'manifests.namespace': 'infrastructure',
  'manifests.prune': 'infrastructure',
  'manifests.kubeconfigSecretRef.name': 'infrastructure',
  'manifests.kubeconfigSecretRef.key': 'infrastructure',

  'source.git.secretRef.name': 'execution',
  'manifests.wait': 'execution',
  'manifests.waitTimeout': 'execution',
  'terraform.parallelism': 'execution',
  'terraform.initEnvironment': 'execution',
  timeout: 'execution',
  'isolation.level': 'execution',
  'isolation.network': 'execution',
  'resources.cpu': 'execution',
  'resources.memory': 'execution',
  'resources.pids': 'execution',
  'resources.disk': 'execution',
  'resources.autoRaise.memory': 'execution',
  pool: 'execution',
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
  const values = pathsOf[scope].flatMap(keys => {
    const value = valueAt(spec, keys)
    return value === undefined ? [] : [[keys.join('.'), value]]
  })
  return `sha256:${sha256(stableJson(values))}`
}

function valueAt(spec: StackSpec, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((value, key) => (isJsonObject(value) ? value[key] : undefined), spec)
}
