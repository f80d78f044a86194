import { DeploymentError, type Resource, readStateFile, secretsIn, typeOf } from '../pulumi/index.ts'

/** The displayable part of a state: addresses and outputs, never an attribute of a resource or a sensitive value (invariant 9). */
export type StateSummary = {
  format: 'terraform' | 'pulumi' | 'unknown'
  serial?: number
  lineage?: string
  /** Of Pulumi: `<project>/<stack>`, as its resources are named. */
  stack?: string
  /** Of Pulumi: operations that had begun when the CLI ended, each with its resource. */
  pendingOperations?: { type: string; address: string }[]
  engineVersion?: string
  resources: { address: string; type: string; provider: string }[]
  outputs: Record<string, { value: unknown; sensitive: boolean }>
  /** The top-level names of a state that is not Terraform's. */
  keys: string[]
}

export const masked = '(sensitive)'

type Object = Record<string, unknown>
const isObject = (value: unknown): value is Object => typeof value === 'object' && value !== null && !Array.isArray(value)
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * Summarizes a state of Terraform or OpenTofu (format 4) or of Pulumi; of any other state only its top-level names.
 * @throws {SyntaxError} if it is not JSON.
 */
export function summarizeState(content: string): StateSummary {
  const state: unknown = JSON.parse(content)
  if (!isObject(state)) throw new SyntaxError('the state is not a JSON object')
  if (state.version !== 4 || typeof state.serial !== 'number') {
    const ofPulumi = summarizePulumiState(content)
    if (ofPulumi) return ofPulumi
    return { format: 'unknown', resources: [], outputs: {}, keys: Object.keys(state).sort() }
  }
  const outputs = isObject(state.outputs) ? state.outputs : {}
  return {
    format: 'terraform',
    serial: state.serial,
    lineage: text(state.lineage),
    engineVersion: text(state.terraform_version),
    resources: (Array.isArray(state.resources) ? state.resources : []).filter(isObject).flatMap(addressesOf),
    outputs: Object.fromEntries(
      Object.entries(outputs).map(([name, output]) => {
        const sensitive = !isObject(output) || output.sensitive === true
        return [name, { value: sensitive ? masked : output.value, sensitive }]
      }),
    ),
    keys: [],
  }
}

function addressesOf(resource: Object): StateSummary['resources'] {
  const { type, provider, instances } = resource
  const all = Array.isArray(instances) ? instances.filter(isObject) : []
  return all.map(instance => ({
    address: addressOf(resource, instance),
    type: text(type),
    provider: /"([^"]+)"/.exec(text(provider))?.[1] ?? text(provider),
  }))
}

/**
 * The address of an instance of a resource in a state of Terraform or OpenTofu. Its `index_key` is undefined without `count` and `for_each`;
 * `deposed` identifies an object that is to be deleted because another one has replaced it.
 */
export function addressOf(
  { module, mode, type, name }: Readonly<Record<string, unknown>>,
  { index_key: key, deposed }: Readonly<Record<string, unknown>>,
): string {
  const base = [text(module), mode === 'data' ? 'data' : '', text(type), text(name)].filter(Boolean).join('.')
  const address = key === undefined ? base : `${base}[${JSON.stringify(key)}]`
  return typeof deposed === 'string' ? `${address} (deposed ${deposed})` : address
}

/** The URN of a resource in a state of Pulumi, and whether another one has replaced it. */
export const urnAddressOf = ({ urn, delete: isDeleted }: Pick<Resource, 'urn' | 'delete'>): string =>
  isDeleted === true ? `${urn} (to be deleted)` : urn

/** Identifies a state over its versions; empty if it is not known. Pulumi's has no lineage, but the names of its project and stack. */
export const lineageOf = ({ format, lineage = '', stack = '' }: StateSummary): string =>
  format === 'pulumi' && stack !== '' ? `pulumi:${stack}` : lineage

/**
 * Raises the serial of a state above that of `current`, which it replaces: Terraform rejects a lower serial, and a plan of the current
 * state must not match. A state that is not Terraform's is returned unchanged.
 */
export function withNewerSerial(content: string, current: string): string {
  const state: unknown = JSON.parse(content)
  if (!isObject(state) || state.version !== 4 || typeof state.serial !== 'number' || current === '') return content
  const currentState: unknown = JSON.parse(current)
  const serial = isObject(currentState) && typeof currentState.serial === 'number' ? currentState.serial : 0
  return `${JSON.stringify({ ...state, serial: Math.max(state.serial, serial + 1) }, null, 2)}\n`
}

/** Why `content` must not replace `current`: another lineage, a lower serial, or another stack of Pulumi. Undefined when it may. */
export function replacementConflict(content: string, current: string): string | undefined {
  if (current === '') return undefined
  const [next, present] = [summarizeState(content), summarizeState(current)]
  if (next.format === 'pulumi' && present.format === 'pulumi' && next.stack && present.stack && next.stack !== present.stack)
    return `it is of Pulumi stack ${next.stack}, but the current state of ${present.stack}`
  if (next.format !== 'terraform' || present.format !== 'terraform') return undefined
  if (next.lineage !== present.lineage) return `its lineage is ${next.lineage}, but the current state has lineage ${present.lineage}`
  if (next.serial! < present.serial!) return `its serial is ${next.serial}, but the current state has serial ${present.serial}`
  return undefined
}

/** Undefined for another state. */
function summarizePulumiState(content: string): StateSummary | undefined {
  try {
    const { state, stack } = readStateFile(content)
    const { resources = [], pending_operations: pending, manifest } = state.deployment
    const root = (resources ?? []).find(({ type, delete: isDelete }) => type === 'pulumi:pulumi:Stack' && isDelete !== true)
    return {
      format: 'pulumi',
      ...(stack && { stack }),
      engineVersion: manifest?.version ?? '',
      resources: (resources ?? []).map(resource => ({
        address: urnAddressOf(resource),
        type: resource.type ?? '',
        provider: packageOf(resource.provider ?? ''),
      })),
      ...(pending && pending.length > 0 && { pendingOperations: pending.map(({ type, resource }) => ({ type, address: resource.urn })) }),
      outputs: outputsOf(root),
      keys: [],
    }
  } catch (error) {
    if (error instanceof DeploymentError) return undefined
    throw error
  }
}

/** The type of a provider's URN without `pulumi:providers:`; the reference is its URN, `::` and its id. */
const packageOf = (reference: string): string => typeOf(reference).replace(/^pulumi:providers:/, '')

function outputsOf(root: Resource | undefined): StateSummary['outputs'] {
  const hidden = new Set(Array.isArray(root?.additionalSecretOutputs) ? root.additionalSecretOutputs : [])
  return Object.fromEntries(
    Object.entries(isObject(root?.outputs) ? root.outputs : {}).map(([name, value]) => {
      const sensitive = hidden.has(name) || secretsIn(value).length > 0
      return [name, { value: sensitive ? masked : value, sensitive }]
    }),
  )
}
