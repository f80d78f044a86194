import { ansibleSecrets, gitSecretKeys, type StackSpec } from '../../api/index.ts'

/** Which keys of an object a Run references; `all` of them where its spec names none. */
export type SelectedKeys = ReadonlySet<string> | 'all'

/** What a Run references, by the name of the object; of outputs, by that of their Stack. */
export type SelectedInputs = {
  readonly secrets: ReadonlyMap<string, SelectedKeys>
  readonly configMaps: ReadonlyMap<string, SelectedKeys>
  readonly outputs: ReadonlyMap<string, SelectedKeys>
}

/** What a Run with this copy of its Stack's spec gets of Secrets, ConfigMaps and outputs before its engine starts, and nothing else. */
export function selectInputs({ source, variablesFrom, env, manifests, ansible }: StackSpec): SelectedInputs {
  const secrets = new Map<string, SelectedKeys>()
  const configMaps = new Map<string, SelectedKeys>()
  const outputs = new Map<string, SelectedKeys>()
  const add = (to: Map<string, SelectedKeys>, name: string, keys: readonly string[] | undefined): void => {
    const before = to.get(name) ?? new Set()
    to.set(name, keys === undefined || before === 'all' ? 'all' : new Set([...before, ...keys]))
  }
  const keysOf = (renamed: Readonly<Record<string, string>> | undefined) => renamed && Object.keys(renamed)
  for (const { secretRef, configMapRef, stackRef } of variablesFrom ?? []) {
    if (secretRef) add(secrets, secretRef.name, keysOf(secretRef.keys))
    if (configMapRef) add(configMaps, configMapRef.name, keysOf(configMapRef.keys))
    if (stackRef) add(outputs, stackRef.name, keysOf(stackRef.outputs))
  }
  for (const { secretKeyRef } of env ?? []) if (secretKeyRef) add(secrets, secretKeyRef.name, [secretKeyRef.key])
  if (manifests?.kubeconfigSecretRef) {
    const { name, key = 'kubeconfig' } = manifests.kubeconfigSecretRef
    add(secrets, name, [key])
  }
  for (const { name, key } of ansibleSecrets(ansible)) add(secrets, name, [key])
  if (source.git?.secretRef) add(secrets, source.git.secretRef.name, gitSecretKeys)
  return { secrets, configMaps, outputs }
}

/** The Stacks whose outputs a program of engine pulumi may refer to while it runs (StackReference). */
export const referableStacks = ({ engine, dependsOn, variablesFrom }: StackSpec): ReadonlySet<string> =>
  new Set(
    engine === 'pulumi'
      ? [...(dependsOn ?? []).map(({ name }) => name), ...(variablesFrom ?? []).flatMap(({ stackRef }) => stackRef?.name ?? [])]
      : [],
  )
