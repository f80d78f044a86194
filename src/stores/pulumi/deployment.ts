/** A resource in a state of Pulumi, fields as in Pulumi's `apitype.ResourceV3`. Fields that are not listed are kept as they are. */
export type Resource = {
  urn: string
  type?: string
  custom?: boolean
  id?: string
  /** It is to be deleted by the next update: a resource with the same URN has replaced it. */
  delete?: boolean
  parent?: string
  provider?: string
  dependencies?: string[]
  propertyDependencies?: Record<string, string[]>
  replaceWith?: string[]
  deletedWith?: string
  viewOf?: string
  aliases?: string[]
  pendingReplacement?: boolean
  [field: string]: unknown
}

/** What the CLI was doing with a resource when it stopped. The state of the provider is not known. */
export type PendingOperation = { type: string; resource: Resource; [field: string]: unknown }

export type SecretsProvider = { type: string; state?: unknown }

/** The version of the CLI that wrote a deployment. `magic` is the hex SHA-256 of `version`, and empty if `version` is. */
export type Manifest = { time: string; magic: string; version: string; [field: string]: unknown }

export type Snippet = { references?: Record<string, string>; [field: string]: unknown }

/**
 * The state of a Pulumi stack, fields as in Pulumi's `apitype.DeploymentV3`, which versions 3 and 4 of the file format share.
 * Invariant of `resources`: a resource comes after everything that it refers to; of several with one URN at most one is not marked for deletion.
 */
export type Deployment = {
  manifest?: Manifest
  secrets_providers?: SecretsProvider
  resources?: Resource[]
  pending_operations?: PendingOperation[]
  metadata?: Record<string, unknown>
  snippets?: Snippet[]
  extensions?: Record<string, unknown>
  [field: string]: unknown
}

/** What `pulumi stack export` writes. From version 4 on, `features` lists what its reader must support. */
export type UntypedDeployment = { version: number; features?: string[]; deployment: Deployment | null }

/** Text that is not a state of Pulumi, or one of a format that is not supported. The message completes "… cannot be used: ". */
export class DeploymentError extends Error {
  override readonly name = 'DeploymentError'
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Parses what `pulumi stack export` writes, `{"version":3,"deployment":{…}}`.
 * @throws {DeploymentError} for anything else, and for a version other than 3 and 4.
 */
export function parseUntypedDeployment(text: string): UntypedDeployment {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new DeploymentError('it is not JSON', { cause: error })
  }
  if (!isObject(value)) throw new DeploymentError('it is not a JSON object')
  const { version, features, deployment = null } = value
  if (!Number.isSafeInteger(version) || !('deployment' in value)) throw new DeploymentError('it is not a state of Pulumi')
  if (version !== 3 && version !== 4) throw new DeploymentError(`it has version ${version}, supported are 3 and 4`)
  if (features !== undefined && features !== null && !isStrings(features)) throw new DeploymentError('features is not a list of names')
  checkDeployment(deployment)
  return { version, ...(features && { features: features as string[] }), deployment }
}

/** @throws {DeploymentError} unless `value` is a deployment or null. */
export function checkDeployment(value: unknown): asserts value is Deployment | null {
  if (value === null) return
  if (!isObject(value)) throw new DeploymentError('its deployment is not an object')
  for (const [index, resource] of listOf(value.resources, 'resources').entries()) checkResource(resource, `resources[${index}]`)
  for (const [index, operation] of listOf(value.pending_operations, 'pending_operations').entries())
    checkOperation(operation, `pending_operations[${index}]`)
  for (const field of ['manifest', 'secrets_providers', 'metadata', 'extensions'])
    if (value[field] !== undefined && value[field] !== null && !isObject(value[field]))
      throw new DeploymentError(`${field} is not an object`)
  for (const snippet of listOf(value.snippets, 'snippets')) if (!isObject(snippet)) throw new DeploymentError('a snippet is not an object')
}

/** @throws {DeploymentError} unless `value` has a URN, and references of the right types. */
export function checkResource(value: unknown, where: string): asserts value is Resource {
  if (!isObject(value) || typeof value.urn !== 'string' || value.urn === '') throw new DeploymentError(`${where} has no URN`)
  for (const field of ['parent', 'provider', 'deletedWith', 'viewOf'])
    if (value[field] !== undefined && typeof value[field] !== 'string') throw new DeploymentError(`${where}.${field} is not text`)
  for (const field of ['dependencies', 'replaceWith', 'aliases'])
    if (value[field] !== undefined && value[field] !== null && !isStrings(value[field]))
      throw new DeploymentError(`${where}.${field} is not a list of URNs`)
  const { propertyDependencies: byProperty } = value
  if (byProperty === undefined || byProperty === null) return
  if (!isObject(byProperty) || !Object.values(byProperty).every(urns => urns === null || isStrings(urns)))
    throw new DeploymentError(`${where}.propertyDependencies is not a list of URNs for each property`)
}

/** @throws {DeploymentError} unless `value` has a type and a resource. */
export function checkOperation(value: unknown, where: string): asserts value is PendingOperation {
  if (!isObject(value) || typeof value.type !== 'string') throw new DeploymentError(`${where} has no type`)
  checkResource(value.resource, `${where}.resource`)
}

function listOf(value: unknown, field: string): unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new DeploymentError(`${field} is not a list`)
  return value
}

const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(item => typeof item === 'string')
