import { ansibleSecrets, type Run, type StackSpec, type VariablesFrom } from '../../../api/index.ts'
import { getOwn, type Json, setOwn } from '../../../kubernetes/object/index.ts'
import type { InputObject, RunInputObjects } from '../../../stores/state/index.ts'
import { InputError } from './input-error.ts'

/** Everything that a Run gets of Secrets, ConfigMaps and the outputs of other Stacks. */
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
  /** Values of Secrets by the field of the spec that names their key. */
  engineSecrets: Record<string, string>
  /** The Secret in `spec.source.git.secretRef`. */
  gitSecret?: InputObject
}

type Reader = {
  secret(name: string, field: string): InputObject
  configMap(name: string, field: string): InputObject
  outputs(stack: string, field: string): RunInputObjects['outputs'][number]
}

/**
 * Resolves every Secret, ConfigMap and output that the Run's spec names.
 * @param objects what the stores have of them.
 * @param onMissing gets the error of a reference whose object does not exist; what it refers to is then left out.
 * @throws {InputError} naming the field, the object and the remedy.
 */
export function resolveInputs(run: Run, objects: RunInputObjects, onMissing?: (error: InputError) => void): RunInputs {
  const { namespace = 'default' } = run.metadata
  const spec = run.spec.stack
  const read = createReader(objects, namespace)
  const inputs: RunInputs = { variables: {}, sensitiveNames: [], env: {}, secretEnvNames: [], secrets: [], engineSecrets: {} }
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
  const unlessMissing = (work: () => void): void => {
    try {
      work()
    } catch (error) {
      if (!onMissing || !(error instanceof InputError) || error.reason === 'InvalidSpec') throw error
      onMissing(error)
    }
  }
  for (const [index, from] of (spec.variablesFrom ?? []).entries()) {
    unlessMissing(() => readVariables(read, namespace, from, `spec.variablesFrom[${index}]`, setVariable))
  }
  for (const [name, value] of Object.entries(spec.variables ?? {})) setVariable(name, value as Json, false)
  inputs.sensitiveNames = [...sensitive]
  readEnv(read, namespace, spec, inputs, unlessMissing)
  const kubeconfig = spec.manifests?.kubeconfigSecretRef
  if (kubeconfig) {
    unlessMissing(() => {
      const field = 'spec.manifests.kubeconfigSecretRef'
      const { name, key = 'kubeconfig' } = kubeconfig
      inputs.kubeconfig = decodeBase64(readKey(read.secret(name, field), key, `${field}.key`, `${namespace}/${name}`))
      inputs.secrets.push(...kubeconfigSecrets(inputs.kubeconfig))
    })
  }
  for (const { field, name, key } of ansibleSecrets(spec.ansible)) {
    unlessMissing(() => {
      const text = decodeBase64(readKey(read.secret(name, field), key, `${field}.key`, `${namespace}/${name}`))
      inputs.engineSecrets[field] = text
      inputs.secrets.push(text)
    })
  }
  const gitSecret = spec.source.git?.secretRef
  if (gitSecret) {
    unlessMissing(() => {
      inputs.gitSecret = read.secret(gitSecret.name, 'spec.source.git.secretRef')
      const { data } = inputs.gitSecret
      for (const key of ['password', 'ssh-privatekey']) if (data[key]) inputs.secrets.push(decodeBase64(data[key]))
    })
  }
  return inputs
}

function createReader({ secrets, configMaps, outputs }: RunInputObjects, namespace: string): Reader {
  const missing = (kind: string, name: string, command: string) =>
    `${kind} ${namespace}/${name} does not exist; create it (kubectl create ${command} ${name} -n ${namespace} …), or correct the name`
  return {
    secret: (name, field) => {
      const found = secrets.find(each => each.name === name)
      if (!found) throw new InputError('SecretNotFound', field, missing('Secret', name, 'secret generic'))
      return found
    },
    configMap: (name, field) => {
      const found = configMaps.find(each => each.name === name)
      if (!found) throw new InputError('ConfigMapNotFound', field, missing('ConfigMap', name, 'configmap'))
      return found
    },
    outputs: (stack, field) => {
      const found = outputs.find(each => each.stack === stack)
      const hint = `wait until it is Ready, or find out why it is not: oarlock describe stack ${stack} -n ${namespace}`
      if (!found) throw new InputError('OutputsNotFound', field, `Stack ${namespace}/${stack} has no outputs yet; ${hint}`)
      return found
    },
  }
}

function readVariables(
  read: Reader,
  namespace: string,
  from: VariablesFrom,
  field: string,
  setVariable: (name: string, value: Json, isSecret: boolean) => void,
): void {
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
    const { data, keys } = read.secret(name, `${field}.secretRef`)
    const texts = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decodeBase64(value)]))
    const found = { kind: 'Secret', name: `${namespace}/${name}`, texts, keys }
    for (const [variable, value] of dataVariables(from.secretRef, `${field}.secretRef`, found)) setVariable(variable, value, true)
  } else if (from.configMapRef) {
    const { name } = from.configMapRef
    const { data, keys } = read.configMap(name, `${field}.configMapRef`)
    const found = { kind: 'ConfigMap', name: `${namespace}/${name}`, texts: data, keys }
    for (const [variable, value] of dataVariables(from.configMapRef, `${field}.configMapRef`, found)) setVariable(variable, value, false)
  } else if (from.stackRef) {
    const { name, outputs } = from.stackRef
    const { data, keys, sensitive } = read.outputs(name, `${field}.stackRef`)
    for (const [output, variable] of Object.entries(outputs ?? Object.fromEntries(keys.map(key => [key, key])))) {
      const value = getOwn(data, output)
      if (value === undefined) {
        const has = keys.join(', ') || 'none'
        throw new InputError(
          'OutputsNotFound',
          `${field}.stackRef.outputs[${output}]`,
          `Stack ${namespace}/${name} has no output ${JSON.stringify(output)}; it has: ${has}`,
        )
      }
      setVariable(variable, JSON.parse(decodeBase64(value)) as Json, sensitive?.includes(output) ?? true)
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
  { kind, name, texts, keys: present }: { kind: string; name: string; texts: Readonly<Record<string, string>>; keys: readonly string[] },
): [variable: string, value: Json][] {
  return Object.entries(keys ?? Object.fromEntries(present.map(key => [key, key]))).map(([key, variable]) => {
    const text = getOwn(texts, key)
    if (text === undefined) {
      const has = present.join(', ') || 'none'
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

function readEnv(read: Reader, namespace: string, spec: StackSpec, inputs: RunInputs, unlessMissing: (work: () => void) => void): void {
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
    unlessMissing(() => {
      const where = `${field}.secretKeyRef`
      const secret = read.secret(secretKeyRef.name, where)
      const text = decodeBase64(readKey(secret, secretKeyRef.key, `${where}.key`, `${namespace}/${secretKeyRef.name}`))
      inputs.env[name] = text
      inputs.secretEnvNames.push(name)
      inputs.secrets.push(text)
    })
  }
}

function readKey({ data, keys }: InputObject, key: string, field: string, name: string): string {
  const value = getOwn(data, key)
  if (value !== undefined) return value
  const has = keys.join(', ') || 'none'
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
