import { parse } from 'yaml'
import type { AnsibleOptions } from '../../../api/index.ts'
import { getOwn, isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import { EngineError } from '../engine-error.ts'
import { unsafe } from './variables-file.ts'

type Inventory = NonNullable<AnsibleOptions['inventory']>

/** Files of the inventory in the order in which Ansible reads them. `path` is one of the source; `text` is written for the Run. */
export type InventoryFile = { readonly path: string } | { readonly name: string; readonly text: string }

/** @throws {EngineError} InvalidConfiguration */
export function inventoryFiles(
  inventory: Inventory | undefined,
  variables: Readonly<Record<string, Json>>,
  own: Readonly<Record<string, unknown>> | undefined,
): InventoryFile[] {
  const { path, text, hosts, groups, variable } = inventory ?? {}
  const found: InventoryFile[] = []
  if (path !== undefined) found.push({ path })
  // The plugins choose by the name of the file.
  if (text !== undefined) found.push({ name: isYaml(text) ? 'inventory-text.yml' : 'inventory-text.ini', text })
  if (hosts || groups) found.push(jsonFile('inventory-hosts', { all: { hosts: (hosts ?? {}) as Json, children: childrenOf(groups) } }))
  if (variable !== undefined) {
    const document = inventoryOf(variable, getOwn(variables, variable))
    const isOwn = own !== undefined && Object.hasOwn(own, variable)
    // What another Stack wrote has no templates.
    found.push(isOwn ? jsonFile('inventory-variable', document) : { name: 'inventory-variable.yml', text: `${unsafe(document)}\n` })
  }
  return found
}

const jsonFile = (name: string, document: Json): InventoryFile => ({ name: `${name}.json`, text: `${JSON.stringify(document)}\n` })

function childrenOf(groups: Inventory['groups']): Json {
  const toObject = (names: readonly string[] | undefined) => Object.fromEntries((names ?? []).map(name => [name, {}]))
  return Object.fromEntries(
    Object.entries(groups ?? {}).map(([name, { hosts, children, vars }]) => [
      name,
      { hosts: toObject(hosts), children: toObject(children), vars: (vars ?? {}) as Json },
    ]),
  )
}

function inventoryOf(name: string, value: Json | undefined): Json {
  if (value === undefined) throw invalid(name, 'which is not set; add it to spec.variables or spec.variablesFrom, or correct the name')
  if (Array.isArray(value) && value.every(host => typeof host === 'string'))
    return { all: { hosts: Object.fromEntries(value.map(host => [host, {}])) } }
  if (isJsonObject(value)) return value as Json
  throw invalid(name, 'which must be a list of host names, or an object of groups')
}

const invalid = (name: string, problem: string) =>
  new EngineError('InvalidConfiguration', `spec.ansible.inventory.variable names ${JSON.stringify(name)}, ${problem}`, { retryable: false })

/** An inventory in INI is no mapping in YAML. */
function isYaml(text: string): boolean {
  try {
    return isJsonObject(parse(text))
  } catch {
    return false
  }
}
