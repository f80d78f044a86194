import { createHash } from 'node:crypto'
import { ansibleSecrets, type Stack, type StackSpec } from '../../api/index.ts'
import type { KubeObject, StatusCause } from '../../kubernetes/object/index.ts'

/** A Secret or ConfigMap as cached: digests of its values by key, never the values (invariant 9). */
export type KeyDigests = { readonly keys: { readonly [key: string]: string } }

export type InputSources = {
  secret(name: string): KeyDigests | undefined
  configMap(name: string): KeyDigests | undefined
  stack(name: string): Stack | undefined
}

export type StackInputs = {
  /** Changes when any source of variables or environment changes. */
  readonly digest: string
  /** References to objects and keys that do not exist. */
  readonly errors: readonly StatusCause[]
}

/** Reduces the data of a Secret or ConfigMap to digests, for the cache of a controller. */
export function keyDigests(data: { readonly [key: string]: string } | undefined): { [key: string]: string } {
  const keys: { [key: string]: string } = {}
  for (const key of Object.keys(data ?? {}).sort()) keys[key] = sha256(data![key]!)
  return keys
}

/**
 * Digests the inputs of a Stack from other objects: outputs of other Stacks, Secrets, ConfigMaps. Missing Secrets, keys and
 * ConfigMaps are errors; a missing Stack is not, because the dependency gate reports it.
 */
export function resolveInputs(spec: StackSpec, sources: InputSources, namespace: string): StackInputs {
  const parts: unknown[] = []
  const errors: StatusCause[] = []
  const missing = (field: string, kind: string, name: string) => {
    const message = `${kind} "${name}" does not exist in namespace "${namespace}"; create it or correct the name`
    errors.push({ reason: 'FieldValueNotFound', field, message })
  }
  const missingKey = (field: string, kind: string, name: string, key: string, { keys }: KeyDigests) => {
    const has = Object.keys(keys).join(', ') || 'no keys'
    errors.push({ reason: 'FieldValueNotFound', field, message: `${kind} "${name}" has no key "${key}"; it has ${has}` })
  }
  const secretKey = (field: string, name: string, key: string | undefined): string | undefined => {
    const secret = sources.secret(name)
    if (!secret) missing(`${field}.name`, 'Secret', name)
    else if (key !== undefined && secret.keys[key] === undefined) missingKey(`${field}.key`, 'Secret', name, key, secret)
    return key === undefined ? JSON.stringify(secret?.keys) : secret?.keys[key]
  }
  for (const [index, { stackRef, secretRef, configMapRef }] of (spec.variablesFrom ?? []).entries()) {
    const field = `spec.variablesFrom[${index}]`
    if (stackRef) parts.push(['stack', stackRef.name, sources.stack(stackRef.name)?.status?.outputsDigest ?? null])
    for (const [kind, type, reference] of [
      ['secret', 'Secret', secretRef],
      ['configMap', 'ConfigMap', configMapRef],
    ] as const) {
      if (!reference) continue
      const found = sources[kind](reference.name)
      const at = `${field}.${kind}Ref`
      if (!found) missing(`${at}.name`, type, reference.name)
      const names = reference.keys && Object.keys(reference.keys)
      if (found)
        for (const key of names ?? []) if (found.keys[key] === undefined) missingKey(`${at}.keys[${key}]`, type, reference.name, key, found)
      const keys = found && (names ? Object.fromEntries(names.sort().map(key => [key, found.keys[key]])) : found.keys)
      // The form that each had before keys could be chosen: another one would make every Stack run again.
      parts.push([kind, reference.name, (kind === 'secret' ? keys && JSON.stringify(keys) : keys) ?? null])
    }
  }
  for (const [index, { name, secretKeyRef }] of (spec.env ?? []).entries()) {
    if (!secretKeyRef) continue
    parts.push(['env', name, secretKey(`spec.env[${index}].secretKeyRef`, secretKeyRef.name, secretKeyRef.key) ?? null])
  }
  // Credentials must exist, but a new password is no reason to apply again.
  const { git } = spec.source
  if (git?.secretRef) secretKey('spec.source.git.secretRef', git.secretRef.name, undefined)
  const kubeconfig = spec.manifests?.kubeconfigSecretRef
  if (kubeconfig) secretKey('spec.manifests.kubeconfigSecretRef', kubeconfig.name, kubeconfig.key ?? 'kubeconfig')
  for (const { field, name, key } of ansibleSecrets(spec.ansible)) secretKey(field, name, key)
  return { digest: parts.length === 0 ? digestOfNothing : digestOf(parts), errors }
}

/** Names of the Secrets and ConfigMaps that a Stack references, as `secret/<name>` and `configMap/<name>`. */
export function referencedInputs(spec: StackSpec): string[] {
  const names: string[] = []
  for (const { secretRef, configMapRef } of spec.variablesFrom ?? []) {
    if (secretRef) names.push(`secret/${secretRef.name}`)
    if (configMapRef) names.push(`configMap/${configMapRef.name}`)
  }
  for (const { secretKeyRef } of spec.env ?? []) if (secretKeyRef) names.push(`secret/${secretKeyRef.name}`)
  if (spec.source.git?.secretRef) names.push(`secret/${spec.source.git.secretRef.name}`)
  if (spec.manifests?.kubeconfigSecretRef) names.push(`secret/${spec.manifests.kubeconfigSecretRef.name}`)
  for (const { name } of ansibleSecrets(spec.ansible)) names.push(`secret/${name}`)
  return [...new Set(names)]
}

/** A transform for informers that keeps digests and drops values. */
export function withoutValues(object: KubeObject<unknown>): KubeObject<KeyDigests> {
  const { data, binaryData } = object as KubeObject<{ data?: Record<string, string>; binaryData?: Record<string, string> }>
  const { managedFields: _, annotations: _a, ...metadata } = object.metadata
  return { apiVersion: object.apiVersion, kind: object.kind, metadata, keys: keyDigests({ ...binaryData, ...data }) }
}

/** Of a Stack without references, as most are. */
const digestOfNothing = digestOf([])

function digestOf(parts: readonly unknown[]): string {
  return `sha256:${sha256(JSON.stringify(parts))}`
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
