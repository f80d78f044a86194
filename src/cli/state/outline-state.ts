/** What may be shown of a state: addresses and outputs, never an attribute of a resource, never a sensitive value (invariant 9). */
export type StateOutline = {
  format: 'terraform' | 'unknown'
  serial?: number
  lineage?: string
  engineVersion?: string
  resources: { address: string; type: string; provider: string }[]
  outputs: Record<string, { value: unknown; sensitive: boolean }>
  /** Of a state that is not Terraform's: the names at its top. */
  keys: string[]
}

export const masked = '(sensitive)'

type Object = Record<string, unknown>
const isObject = (value: unknown): value is Object => typeof value === 'object' && value !== null && !Array.isArray(value)
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * Reads a state of Terraform or OpenTofu (format 4) as far as it may be shown; of anything else only its top names.
 * @throws {SyntaxError} if it is not JSON.
 */
export function outlineState(content: string): StateOutline {
  const state: unknown = JSON.parse(content)
  if (!isObject(state)) throw new SyntaxError('the state is not a JSON object')
  if (state.version !== 4 || typeof state.serial !== 'number') {
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

function addressesOf(resource: Object): StateOutline['resources'] {
  const { module, mode, type, name, provider, instances } = resource
  const base = [text(module), mode === 'data' ? 'data' : '', text(type), text(name)].filter(Boolean).join('.')
  const all = Array.isArray(instances) ? instances.filter(isObject) : []
  return all.map(({ index_key: key }) => ({
    address: key === undefined ? base : `${base}[${JSON.stringify(key)}]`,
    type: text(type),
    provider: /"([^"]+)"/.exec(text(provider))?.[1] ?? text(provider),
  }))
}

/**
 * A state to put in place of `current`, as one that is newer: tools refuse a serial that goes back, and a plan made on the other must
 * not fit. What is not Terraform's is taken as it is.
 */
export function asNewest(content: string, current: string): string {
  const state: unknown = JSON.parse(content)
  if (!isObject(state) || state.version !== 4 || typeof state.serial !== 'number' || current === '') return content
  const now: unknown = JSON.parse(current)
  const serial = isObject(now) && typeof now.serial === 'number' ? now.serial : 0
  return `${JSON.stringify({ ...state, serial: Math.max(state.serial, serial + 1) }, null, 2)}\n`
}

/** Why `content` may not take the place of `current`: another history, or an older one. Undefined: it may. */
export function whyNotNewer(content: string, current: string): string | undefined {
  if (current === '') return undefined
  const [next, now] = [outlineState(content), outlineState(current)]
  if (next.format !== 'terraform' || now.format !== 'terraform') return undefined
  if (next.lineage !== now.lineage) return `its lineage is ${next.lineage}, and that of the current state is ${now.lineage}`
  if (next.serial! < now.serial!) return `its serial is ${next.serial}, and that of the current state is ${now.serial}`
  return undefined
}
