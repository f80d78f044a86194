import { isJsonObject } from '../../../kubernetes/object/index.ts'
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

/** A value that is neither an object nor a list, or an empty one, or one that is too large to be divided, which is hidden. */
type Leaf = { readonly value: unknown; readonly isSensitive: boolean }
type Leaves = ReadonlyMap<string, Leaf>
/** A resource whose leaves are found only if its text differs: most of a large state is unchanged. */
type Content = { readonly text: string; leaves(budget: PathBudget): Leaves }
type StateContent = { readonly resources: ReadonlyMap<string, Content>; readonly outputs: Leaves }

/** How many characters the paths of one content may have: those of a small state with long names around many values have gigabytes. */
type PathBudget = { characters: number }
const maxPathCharacters = 2_000_000
/** How many sensitive paths of one resource are read. With more, all of it is hidden: resources have at most a few hundred. */
const maxSensitivePaths = 100_000

type JsonObject = Readonly<Record<string, unknown>>
const objectsIn = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])

/**
 * What differs between two contents of a state or an inventory, by the addresses of their resources; an empty text has none.
 * @param withValues whether values are part of it. What the engine or the provider marks as sensitive is hidden in any case (invariant 9).
 * @throws {SyntaxError} for a text that is not JSON.
 */
export function diffStates(from: string, to: string, { withValues }: { readonly withValues: boolean }): Omit<StateDiff, 'from' | 'to'> {
  // One for each, so that what is equal is divided equally.
  const [oldPaths, newPaths]: readonly [PathBudget, PathBudget] = [{ characters: maxPathCharacters }, { characters: maxPathCharacters }]
  const [before, after] = [readContent(from, oldPaths), readContent(to, newPaths)]
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
    const attributes = resources.length < maxResourceChanges ? changesOf(old.leaves(oldPaths), now.leaves(newPaths), withValues) : undefined
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

function readContent(text: string, budget: PathBudget): StateContent {
  const empty: StateContent = { resources: new Map(), outputs: new Map() }
  if (text === '') return empty
  const value: unknown = JSON.parse(text)
  if (!isJsonObject(value)) throw new SyntaxError('the state is not a JSON object')
  if (value.engine === 'manifests') return inventoryContent(value)
  if (value.version === 4 && typeof value.serial === 'number') return terraformContent(value)
  return pulumiContent(text, budget) ?? { resources: new Map(), outputs: leavesOf(value, new Set(['']), budget) }
}

function terraformContent(state: JsonObject): StateContent {
  const resources = new Map<string, Content>()
  for (const resource of objectsIn(state.resources))
    for (const { index_key: key, deposed, attributes, sensitive_attributes: marked } of objectsIn(resource.instances)) {
      const address = `${addressOf(resource, key)}${typeof deposed === 'string' ? ` (deposed ${deposed})` : ''}`
      resources.set(address, {
        text: JSON.stringify(attributes),
        leaves: budget => leavesOf(attributes, sensitivePaths(marked, pathOfSteps), budget),
      })
    }
  const outputs = new Map<string, Leaf>()
  for (const [name, output] of Object.entries(isJsonObject(state.outputs) ? state.outputs : {}))
    outputs.set(name, {
      value: isJsonObject(output) ? output.value : output,
      isSensitive: !isJsonObject(output) || output.sensitive === true,
    })
  return { resources, outputs }
}

/** @param marked what a state says is sensitive. */
function sensitivePaths(marked: unknown, pathOf: (mark: unknown) => string): Set<string> {
  if (!Array.isArray(marked)) return new Set()
  return new Set(marked.length > maxSensitivePaths ? [''] : marked.map(pathOf))
}

/** The path of one entry of `sensitive_attributes`: `[{ type: 'get_attr', value: 'password' }, { type: 'index', value: { value: 0 } }]`. */
function pathOfSteps(steps: unknown): string {
  return objectsIn(steps).reduce((path, { value }) => {
    const key = isJsonObject(value) ? value.value : value
    return typeof key === 'number' ? `${path}[${key}]` : joined(path, String(key))
  }, '')
}

/** Undefined for another state. */
function pulumiContent(text: string, budget: PathBudget): StateContent | undefined {
  try {
    const { resources = [] } = readStateFile(text).state.deployment
    const contents = new Map<string, Content>()
    let outputs: Leaves = new Map()
    for (const { urn, type, delete: isDeleted, id, inputs, outputs: own, additionalSecretOutputs } of resources ?? []) {
      const value = own ?? inputs
      const valueLeaves = (paths: PathBudget) =>
        leavesOf(
          value,
          sensitivePaths(additionalSecretOutputs, name => joined('', String(name))),
          paths,
        )
      if (type === 'pulumi:pulumi:Stack' && isDeleted !== true) outputs = valueLeaves(budget)
      else
        contents.set(`${urn}${isDeleted === true ? ' (to be deleted)' : ''}`, {
          text: JSON.stringify([id, value]),
          leaves: paths => new Map([...valueLeaves(paths), ['id', plain(id)]]),
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
    resources.set(address, { text: JSON.stringify([apiVersion, uid]), leaves: budget => leavesOf({ apiVersion, uid }, new Set(), budget) })
  }
  return { resources, outputs: new Map() }
}

const plain = (value: unknown): Leaf => ({ value, isSensitive: false })
const joined = (path: string, key: string) => {
  const step = /^[\w-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? step : `${path}.${step}`
}

/** @param sensitive paths of values that are sensitive with everything below them; the path of the whole value is empty. */
function leavesOf(value: unknown, sensitive: ReadonlySet<string>, budget: PathBudget): Map<string, Leaf> {
  const leaves = new Map<string, Leaf>()
  const pending: { readonly path: string; readonly found: unknown; readonly inherited: boolean }[] = [
    { path: '', found: value, inherited: false },
  ]
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { path, found, inherited } = next
    const secret = secretOf(found)
    const isSensitive = inherited || sensitive.has(path)
    const parts = secret ? [] : partsOf(found)
    if (secret) leaves.set(path, { value: secret.ciphertext ?? secret.plaintext, isSensitive: true })
    else if (parts.length === 0) {
      if (found !== undefined) leaves.set(path, { value: found, isSensitive })
    } else {
      const cost = parts.reduce((sum, [step]) => sum + path.length + String(step).length + 16, 0)
      // What is not divided may contain what is sensitive.
      if (cost > budget.characters) leaves.set(path, { value: found, isSensitive: true })
      else {
        budget.characters -= cost
        for (const [step, part] of parts)
          pending.push({ path: typeof step === 'number' ? `${path}[${step}]` : joined(path, step), found: part, inherited: isSensitive })
      }
    }
  }
  return leaves
}

const partsOf = (value: unknown): [step: string | number, part: unknown][] =>
  Array.isArray(value) ? [...value.entries()] : isJsonObject(value) ? Object.entries(value) : []
