import { DeploymentError, readStateFile, secretOf } from '../../../stores/pulumi/index.ts'
import { addressOf } from '../../../stores/state/index.ts'
import {
  type AttributeChange,
  maxAttributeChanges,
  maxResourceChanges,
  type ResourceChange,
  type ShownValue,
  type StateDiff,
} from '../../protocol/index.ts'

/** A value that is neither an object nor a list, or an empty one. */
type Leaf = { readonly value: unknown; readonly isSensitive: boolean }
type Leaves = ReadonlyMap<string, Leaf>
/** A resource whose leaves are found only if its text differs: most of a large state is unchanged. */
type Content = { readonly text: string; leaves(): Leaves }
type StateContent = { readonly resources: ReadonlyMap<string, Content>; readonly outputs: Leaves }

type JsonObject = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)
const objectsIn = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/**
 * What differs between two contents of a state or an inventory, by the addresses of their resources; an empty text has none.
 * @param withValues whether values are part of it. What the engine or the provider marks as sensitive is hidden in any case (invariant 9).
 * @throws {SyntaxError} for a text that is not JSON.
 */
export function diffStates(from: string, to: string, { withValues }: { readonly withValues: boolean }): Omit<StateDiff, 'from' | 'to'> {
  const [before, after] = [readContent(from), readContent(to)]
  const resources: ResourceChange[] = []
  let unchanged = 0
  for (const address of [...new Set([...before.resources.keys(), ...after.resources.keys()])].sort()) {
    const [old, now] = [before.resources.get(address), after.resources.get(address)]
    if (!old || !now) {
      resources.push({ address, change: now ? 'added' : 'removed', attributes: [], moreAttributes: 0 })
      continue
    }
    if (old.text === now.text) {
      unchanged++
      continue
    }
    const attributes = resources.length < maxResourceChanges ? changesOf(old.leaves(), now.leaves(), withValues) : undefined
    if (attributes?.length === 0) unchanged++
    else {
      const moreAttributes = Math.max(0, (attributes?.length ?? 0) - maxAttributeChanges)
      resources.push({ address, change: 'changed', attributes: attributes?.slice(0, maxAttributeChanges) ?? [], moreAttributes })
    }
  }
  return {
    resources: resources.slice(0, maxResourceChanges),
    moreResources: Math.max(0, resources.length - maxResourceChanges),
    outputs: changesOf(before.outputs, after.outputs, withValues).slice(0, maxAttributeChanges),
    unchanged,
  }
}

function changesOf(old: Leaves, now: Leaves, withValues: boolean): AttributeChange[] {
  const shown = ({ value, isSensitive }: Leaf): ShownValue => (withValues && !isSensitive ? { value } : { hidden: true })
  return [...new Set([...old.keys(), ...now.keys()])].sort().flatMap(path => {
    const [from, to] = [old.get(path), now.get(path)]
    if (from && to && JSON.stringify(from.value) === JSON.stringify(to.value)) return []
    return [{ path, ...(from && { from: shown(from) }), ...(to && { to: shown(to) }) }]
  })
}

function readContent(text: string): StateContent {
  const empty: StateContent = { resources: new Map(), outputs: new Map() }
  if (text === '') return empty
  const value: unknown = JSON.parse(text)
  if (!isObject(value)) return empty
  if (value.engine === 'manifests') return inventoryContent(value)
  if (value.version === 4 && typeof value.serial === 'number') return terraformContent(value)
  return pulumiContent(text) ?? { resources: new Map(), outputs: leavesOf(value, () => true) }
}

function terraformContent(state: JsonObject): StateContent {
  const resources = new Map<string, Content>()
  for (const resource of objectsIn(state.resources))
    for (const { index_key: key, deposed, attributes, sensitive_attributes: marked } of objectsIn(resource.instances)) {
      const sensitive = (Array.isArray(marked) ? marked : []).map(pathOfSteps)
      const isSensitive = (path: string) => sensitive.some(prefix => isBelow(path, prefix))
      const address = `${addressOf(resource, key)}${typeof deposed === 'string' ? ` (deposed ${deposed})` : ''}`
      resources.set(address, { text: JSON.stringify(attributes), leaves: () => leavesOf(attributes, isSensitive) })
    }
  const outputs = new Map<string, Leaf>()
  for (const [name, output] of Object.entries(isObject(state.outputs) ? state.outputs : {}))
    outputs.set(name, { value: isObject(output) ? output.value : output, isSensitive: !isObject(output) || output.sensitive === true })
  return { resources, outputs }
}

/** The path of one entry of `sensitive_attributes`: `[{ type: 'get_attr', value: 'password' }, { type: 'index', value: { value: 0 } }]`. */
function pathOfSteps(steps: unknown): string {
  return objectsIn(steps).reduce((path, { value }) => {
    const key = isObject(value) ? value.value : value
    return typeof key === 'number' ? `${path}[${key}]` : joined(path, String(key))
  }, '')
}

/** Undefined for another state. */
function pulumiContent(text: string): StateContent | undefined {
  try {
    const { resources = [] } = readStateFile(text).state.deployment
    const contents = new Map<string, Content>()
    let outputs: Leaves = new Map()
    for (const { urn, type, delete: isDeleted, id, inputs, outputs: own, additionalSecretOutputs } of resources ?? []) {
      const secret = new Set(Array.isArray(additionalSecretOutputs) ? additionalSecretOutputs.map(String) : [])
      const value = own ?? inputs
      const leaves = () => leavesOf(value, path => [...secret].some(name => isBelow(path, name)))
      if (type === 'pulumi:pulumi:Stack' && isDeleted !== true) outputs = leaves()
      else
        contents.set(`${urn}${isDeleted === true ? ' (to be deleted)' : ''}`, {
          text: JSON.stringify([id, value]),
          leaves: () => new Map([...leaves(), ['id', plain(id)]]),
        })
    }
    return { resources: contents, outputs }
  } catch (error) {
    if (error instanceof DeploymentError) return undefined
    throw error
  }
}

function inventoryContent({ objects }: JsonObject): StateContent {
  const resources = new Map<string, Content>()
  for (const { apiVersion, kind, namespace, name, uid } of objectsIn(objects)) {
    const address = `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
    resources.set(address, { text: JSON.stringify([apiVersion, uid]), leaves: () => leavesOf({ apiVersion, uid }, () => false) })
  }
  return { resources, outputs: new Map() }
}

const plain = (value: unknown): Leaf => ({ value, isSensitive: false })
const isBelow = (path: string, prefix: string) =>
  path === prefix || (path.startsWith(prefix) && /^[.[]/.test(path.slice(prefix.length))) || prefix === ''
const joined = (path: string, key: string) => {
  const step = /^[\w-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? step : `${path}.${step}`
}

function leavesOf(value: unknown, isSensitive: (path: string) => boolean): Map<string, Leaf> {
  const leaves = new Map<string, Leaf>()
  const pending: [path: string, value: unknown][] = [['', value]]
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [path, found] = next
    const secret = secretOf(found)
    if (secret) leaves.set(path, { value: secret.ciphertext ?? secret.plaintext, isSensitive: true })
    else if (Array.isArray(found) && found.length > 0)
      for (const [index, item] of found.entries()) pending.push([`${path}[${index}]`, item])
    else if (isObject(found) && Object.keys(found).length > 0)
      for (const [key, item] of Object.entries(found)) pending.push([joined(path, key), item])
    else if (found !== undefined) leaves.set(path, { value: found, isSensitive: isSensitive(path) })
  }
  return leaves
}
