import { outputsSecretName, type Run, type StackSpec, type VariablesFrom } from '../../../api/index.ts'
import { type Client, type ConfigMapBody, configMapResource, type SecretBody, secretResource } from '../../../kubernetes/client/index.ts'
import { getOwn, type Json, type KubeObject, setOwn } from '../../../kubernetes/object/index.ts'
import { InputError } from './input-error.ts'
import { explainForbidden } from './inputs-access.ts'
import { sensitiveAnnotation } from './outputs.ts'

/** Everything that a Run reads from Secrets, ConfigMaps and the outputs of other Stacks. */
export type RunInputs = {
  variables: Record<string, Json>
  /** Names in `variables` whose values are secret. */
  sensitiveNames: string[]
  env: Record<string, string>
  /** Names in `env` whose values come from Secrets. */
  secretEnvNames: string[]
  /** Every secret value, for the masker (invariant 9). */
  secrets: string[]
  kubeconfig?: string
  /** Data of the Secret in `spec.source.git.secretRef`, in base64. */
  gitSecret?: Record<string, string>
}

type Reader = {
  secret(name: string, field: string, hint?: string): Promise<KubeObject<SecretBody>>
  configMap(name: string, field: string): Promise<KubeObject<ConfigMapBody>>
}

/**
 * Reads every Secret, ConfigMap and output that the Run's spec names.
 * @param onMissing gets the error of a reference whose object does not exist; what it refers to is then left out.
 * @throws {InputError} naming the field, the object and the remedy.
 */
export async function readInputs(
  client: Client,
  run: Run,
  signal: AbortSignal,
  onMissing?: (error: InputError) => void,
): Promise<RunInputs> {
  const { namespace = 'default' } = run.metadata
  const spec = run.spec.stack
  const read = createReader(client, namespace, signal)
  const inputs: RunInputs = { variables: {}, sensitiveNames: [], env: {}, secretEnvNames: [], secrets: [] }
  const sensitive = new Set<string>()
  const setVariable = (name: string, value: Json, isSecret: boolean): void => {
    setOwn(inputs.variables, name, value)
    if (!isSecret) {
      sensitive.delete(name)
      return
    }
    sensitive.add(name)
    inputs.secrets.push(...stringsIn(value))
  }
  const unlessMissing = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!onMissing || !(error instanceof InputError) || error.reason === 'InvalidSpec') throw error
      onMissing(error)
    }
  }
  for (const [index, from] of (spec.variablesFrom ?? []).entries()) {
    await unlessMissing(() => readVariables(read, namespace, from, `spec.variablesFrom[${index}]`, setVariable))
  }
  for (const [name, value] of Object.entries(spec.variables ?? {})) setVariable(name, value as Json, false)
  inputs.sensitiveNames = [...sensitive]
  await readEnv(read, namespace, spec, inputs, unlessMissing)
  const kubeconfig = spec.manifests?.kubeconfigSecretRef
  if (kubeconfig) {
    await unlessMissing(async () => {
      const field = 'spec.manifests.kubeconfigSecretRef'
      const { name, key = 'kubeconfig' } = kubeconfig
      inputs.kubeconfig = decodeBase64(readKey(await read.secret(name, field), key, `${field}.key`, `${namespace}/${name}`))
      inputs.secrets.push(...kubeconfigSecrets(inputs.kubeconfig))
    })
  }
  const gitSecret = spec.source.git?.secretRef
  if (gitSecret) {
    await unlessMissing(async () => {
      inputs.gitSecret = (await read.secret(gitSecret.name, 'spec.source.git.secretRef')).data ?? {}
      for (const key of ['password', 'ssh-privatekey']) if (inputs.gitSecret[key]) inputs.secrets.push(decodeBase64(inputs.gitSecret[key]))
    })
  }
  return inputs
}

function createReader(client: Client, namespace: string, signal: AbortSignal): Reader {
  const missing = (kind: string, name: string, hint: string) => `${kind} ${namespace}/${name} does not exist; ${hint}`
  return {
    async secret(name, field, hint = `create it (kubectl create secret generic ${name} -n ${namespace} …), or correct the name`) {
      const found = await explainForbidden(client.resource(secretResource).getOrUndefined(name, { namespace, signal }), namespace)
      if (!found) throw new InputError('SecretNotFound', field, missing('Secret', name, hint))
      return found
    },
    async configMap(name, field) {
      const found = await explainForbidden(client.resource(configMapResource).getOrUndefined(name, { namespace, signal }), namespace)
      const hint = `create it (kubectl create configmap ${name} -n ${namespace} …), or correct the name`
      if (!found) throw new InputError('ConfigMapNotFound', field, missing('ConfigMap', name, hint))
      return found
    },
  }
}

async function readVariables(
  read: Reader,
  namespace: string,
  from: VariablesFrom,
  field: string,
  setVariable: (name: string, value: Json, isSecret: boolean) => void,
): Promise<void> {
  const set = Object.keys(from).filter(key => from[key as keyof VariablesFrom] !== undefined)
  if (set.length !== 1) {
    throw new InputError(
      'InvalidSpec',
      field,
      `exactly one of stackRef, secretRef, configMapRef must be set, got ${set.join(' and ') || 'none'}`,
    )
  }
  if (from.secretRef) {
    const { name } = from.secretRef
    const { data = {} } = await read.secret(name, `${field}.secretRef`)
    const texts = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decodeBase64(value)]))
    const found = { kind: 'Secret', name: `${namespace}/${name}`, texts }
    for (const [variable, value] of dataVariables(from.secretRef, `${field}.secretRef`, found)) setVariable(variable, value, true)
  } else if (from.configMapRef) {
    const { name } = from.configMapRef
    const { data = {} } = await read.configMap(name, `${field}.configMapRef`)
    const found = { kind: 'ConfigMap', name: `${namespace}/${name}`, texts: data }
    for (const [variable, value] of dataVariables(from.configMapRef, `${field}.configMapRef`, found)) setVariable(variable, value, false)
  } else if (from.stackRef) {
    const { name, outputs } = from.stackRef
    const secretName = outputsSecretName(name)
    const hint = `Stack ${namespace}/${name} has no outputs yet; wait until it is Ready, or find out why it is not: oarlock describe stack ${name} -n ${namespace}`
    const secret = await read.secret(secretName, `${field}.stackRef`, hint).catch(error => {
      if (error instanceof InputError) throw new InputError('OutputsNotFound', `${field}.stackRef`, hint)
      throw error
    })
    const isSecret = isSecretOutput(secret)
    const data = secret.data ?? {}
    for (const [output, variable] of Object.entries(outputs ?? Object.fromEntries(Object.keys(data).map(key => [key, key])))) {
      const value = getOwn(data, output)
      if (value === undefined) {
        const has = Object.keys(data).sort().join(', ') || 'none'
        throw new InputError(
          'OutputsNotFound',
          `${field}.stackRef.outputs[${output}]`,
          `Stack ${namespace}/${name} has no output ${JSON.stringify(output)}; it has: ${has}`,
        )
      }
      setVariable(variable, JSON.parse(decodeBase64(value)) as Json, isSecret(output))
    }
  }
}

/**
 * The variables of a Secret or ConfigMap. What an error reports of a value is its key: the value may be secret (invariant 9).
 * @throws {InputError} KeyNotFound, InvalidConfiguration
 */
export function dataVariables(
  { keys, format }: NonNullable<VariablesFrom['secretRef']>,
  field: string,
  { kind, name, texts }: { kind: string; name: string; texts: Readonly<Record<string, string>> },
): [variable: string, value: Json][] {
  return Object.entries(keys ?? Object.fromEntries(Object.keys(texts).map(key => [key, key]))).map(([key, variable]) => {
    const text = getOwn(texts, key)
    if (text === undefined) {
      const has = Object.keys(texts).sort().join(', ') || 'none'
      throw new InputError('KeyNotFound', `${field}.keys[${key}]`, `${kind} ${name} has no key ${JSON.stringify(key)}; it has: ${has}`)
    }
    if (format !== 'JSON') return [variable, text]
    try {
      return [variable, JSON.parse(text) as Json]
    } catch {
      const message = `key ${JSON.stringify(key)} of ${kind} ${name} is not JSON; correct it (a JSON string has double quotes), or set format: Text`
      throw new InputError('InvalidConfiguration', `${field}.format`, message)
    }
  })
}

/** Which outputs are sensitive. A Secret without the annotation was edited by someone else: then all of them are. */
export function isSecretOutput(secret: KubeObject<SecretBody>): (name: string) => boolean {
  try {
    const names: unknown = JSON.parse(secret.metadata.annotations?.[sensitiveAnnotation] ?? 'null')
    return Array.isArray(names) ? name => names.includes(name) : () => true
  } catch {
    return () => true
  }
}

async function readEnv(
  read: Reader,
  namespace: string,
  spec: StackSpec,
  inputs: RunInputs,
  unlessMissing: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  for (const [index, { name, value, secretKeyRef }] of (spec.env ?? []).entries()) {
    const field = `spec.env[${index}]`
    if ((value === undefined) === (secretKeyRef === undefined)) {
      throw new InputError(
        'InvalidSpec',
        field,
        `exactly one of value and secretKeyRef must be set for ${name}, got ${value === undefined ? 'none' : 'both'}`,
      )
    }
    if (!secretKeyRef) {
      inputs.env[name] = value!
      continue
    }
    await unlessMissing(async () => {
      const where = `${field}.secretKeyRef`
      const secret = await read.secret(secretKeyRef.name, where)
      const text = decodeBase64(readKey(secret, secretKeyRef.key, `${where}.key`, `${namespace}/${secretKeyRef.name}`))
      inputs.env[name] = text
      inputs.secretEnvNames.push(name)
      inputs.secrets.push(text)
    })
  }
}

function readKey(secret: KubeObject<SecretBody>, key: string, field: string, name: string): string {
  const value = getOwn(secret.data, key)
  if (value !== undefined) return value
  const has =
    Object.keys(secret.data ?? {})
      .sort()
      .join(', ') || 'none'
  throw new InputError('KeyNotFound', field, `Secret ${name} has no key ${JSON.stringify(key)}; it has: ${has}`)
}

const decodeBase64 = (base64: string): string => Buffer.from(base64, 'base64').toString('utf8')

/** Every string and number inside a value, as text. */
export function stringsIn(value: Json): string[] {
  if (typeof value === 'string') return [value]
  if (value === null || typeof value === 'boolean') return []
  if (typeof value === 'number') return [String(value)]
  return Object.values(value).flatMap(stringsIn)
}

// Only credentials: masking lines such as "kind: Config" would make the log unreadable.
export function kubeconfigSecrets(kubeconfig: string): string[] {
  return [...kubeconfig.matchAll(/^\s*-?\s*"?(?:token|password|client-key-data)"?\s*:\s*"?([^"\s,]+)/gm)].map(match => match[1]!)
}
