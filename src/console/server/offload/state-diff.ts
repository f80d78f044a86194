import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { secretOf } from '../../../stores/pulumi/index.ts'
import {
  type AttributeChange,
  maxAttributeChanges,
  maxResourceChanges,
  type ResourceChange,
  type ShownValue,
  type StateDiff,
} from '../../protocol/index.ts'
import { type Marks, markEach, marksOfInstance, marksOfResource, noMarks, partsOf, recordsSensitiveAttributes } from './sensitive-values.ts'
import { parseStateContent, type StateContent } from './state-content.ts'

/** A value that is neither an object nor a list, or an empty one; or one that is sensitive as a whole, or too large to be divided, which is hidden. */
type Leaf = { readonly value: unknown; readonly isSensitive: boolean }
type Leaves = ReadonlyMap<string, Leaf>
/** A resource whose leaves are found only if its text differs: most of a large state is unchanged. */
type Content = { readonly text: string; leaves(budget: PathBudget): Leaves }
type DividedState = { readonly resources: ReadonlyMap<string, Content>; readonly outputs: Leaves }

/** How many characters the paths of one content may have: those of a small state with long names around many values have gigabytes. */
type PathBudget = { characters: number }
const maxPathCharacters = 2_000_000

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

function readContent(text: string, budget: PathBudget): DividedState {
  if (text === '') return { resources: new Map(), outputs: new Map() }
  const content = parseStateContent(text)
  switch (content.format) {
    case 'terraform':
      return terraformContent(content)
    case 'pulumi':
      return pulumiContent(content, budget)
    case 'inventory':
      return inventoryContent(content)
    case 'unknown':
      return { resources: new Map(), outputs: leavesOf(content.value, markEach(content.value), budget) }
  }
}

type Of<Format extends StateContent['format']> = Extract<StateContent, { readonly format: Format }>

function terraformContent({ engineVersion, instances, outputs: all }: Of<'terraform'>): DividedState {
  const isRecorded = recordsSensitiveAttributes(engineVersion)
  const resources = new Map<string, Content>()
  for (const each of instances) {
    const { attributes } = each.instance
    resources.set(each.address, {
      text: JSON.stringify(attributes),
      leaves: budget => leavesOf(attributes, marksOfInstance(each, isRecorded), budget),
    })
  }
  const outputs = new Map<string, Leaf>()
  for (const [name, output] of Object.entries(all))
    outputs.set(name, {
      value: isJsonObject(output) ? output.value : output,
      isSensitive: !isJsonObject(output) || output.sensitive === true,
    })
  return { resources, outputs }
}

function pulumiContent({ resources }: Of<'pulumi'>, budget: PathBudget): DividedState {
  const contents = new Map<string, Content>()
  let outputs: Leaves = new Map()
  for (const { address, resource } of resources) {
    const { type, delete: isDeleted, id, inputs, outputs: own } = resource
    const value = own ?? inputs
    const valueLeaves = (paths: PathBudget) => {
      const marks = marksOfResource(resource)
      return leavesOf(value, own ? marks.outputs : marks.inputs, paths)
    }
    if (type === 'pulumi:pulumi:Stack' && isDeleted !== true) outputs = valueLeaves(budget)
    else
      contents.set(address, {
        text: JSON.stringify([id, value]),
        leaves: paths => valueLeaves(paths).set('id', { value: id, isSensitive: partsOf(id, marksOfResource(resource).id) === undefined }),
      })
  }
  return { resources: contents, outputs }
}

function inventoryContent({ entries }: Of<'inventory'>): DividedState {
  const resources = new Map<string, Content>()
  for (const {
    address,
    entry: { apiVersion, uid },
  } of entries)
    resources.set(address, { text: JSON.stringify([apiVersion, uid]), leaves: budget => leavesOf({ apiVersion, uid }, noMarks, budget) })
  return { resources, outputs: new Map() }
}

const joined = (path: string, key: string) => {
  const step = /^[\w-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? step : `${path}.${step}`
}

function leavesOf(value: unknown, marked: Marks, budget: PathBudget): Map<string, Leaf> {
  const leaves = new Map<string, Leaf>()
  const pending: { readonly path: string; readonly found: unknown; readonly marks: Marks }[] = [{ path: '', found: value, marks: marked }]
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { path, found, marks } = next
    const parts = partsOf(found, marks)
    const secret = secretOf(found)
    if (!parts) leaves.set(path, { value: secret ? (secret.ciphertext ?? secret.plaintext) : found, isSensitive: true })
    else if (parts.length === 0) {
      if (found !== undefined) leaves.set(path, { value: found, isSensitive: false })
    } else {
      const cost = parts.reduce((sum, { step }) => sum + path.length + String(step).length + 16, 0)
      // What is not divided may contain what is sensitive.
      if (cost > budget.characters) leaves.set(path, { value: found, isSensitive: true })
      else {
        budget.characters -= cost
        for (const part of parts)
          pending.push({
            path: typeof part.step === 'number' ? `${path}[${part.step}]` : joined(path, part.step),
            found: part.value,
            marks: part.marks,
          })
      }
    }
  }
  return leaves
}
