import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { DeploymentError, type Resource, readStateFile } from '../../../stores/pulumi/index.ts'
import { addressOf, urnAddressOf } from '../../../stores/state/index.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** An instance of a resource of Terraform or OpenTofu. Addresses are unique but for a resource of Pulumi that was replaced more than once. */
export type Instance = { readonly address: string; readonly resource: JsonObject; readonly instance: JsonObject }

/** A state, or the inventory of engine manifests, as what shows it needs it. */
export type StateContent =
  | {
      readonly format: 'terraform'
      readonly engineVersion: string
      readonly instances: readonly Instance[]
      readonly outputs: JsonObject
    }
  | { readonly format: 'pulumi'; readonly resources: readonly { readonly address: string; readonly resource: Resource }[] }
  | { readonly format: 'inventory'; readonly entries: readonly { readonly address: string; readonly entry: JsonObject }[] }
  | { readonly format: 'unknown'; readonly value: JsonObject }

/** @throws {SyntaxError} for a text that is not a JSON object. */
export function parseStateContent(text: string): StateContent {
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new SyntaxError('the state is not a JSON object')
  if (value.engine === 'manifests' && Array.isArray(value.objects))
    return { format: 'inventory', entries: objectsIn(value.objects).map(entry => ({ address: entryAddressOf(entry), entry })) }
  if (value.version !== 4 || typeof value.serial !== 'number') return pulumiContent(text) ?? { format: 'unknown', value }
  return {
    format: 'terraform',
    engineVersion: typeof value.terraform_version === 'string' ? value.terraform_version : '',
    instances: objectsIn(value.resources).flatMap(resource =>
      objectsIn(resource.instances).map(instance => ({ address: addressOf(resource, instance), resource, instance })),
    ),
    outputs: isJsonObject(value.outputs) ? value.outputs : {},
  }
}

/** Undefined for another state. */
function pulumiContent(text: string): StateContent | undefined {
  try {
    const { resources } = readStateFile(text).state.deployment
    return { format: 'pulumi', resources: (resources ?? []).map(resource => ({ address: urnAddressOf(resource), resource })) }
  } catch (error) {
    if (error instanceof DeploymentError) return undefined
    throw error
  }
}

/** `ConfigMap shop/web`. */
export const entryAddressOf = ({ kind, namespace, name }: JsonObject): string =>
  `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`

const objectsIn = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])
