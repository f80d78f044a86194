import { isJsonObject } from '../../../kubernetes/object/index.ts'
import type { Flavor } from './flavor.ts'
import { type HclToken, hclTokens } from './hcl-blocks.ts'

/** What the files of one module name. Only the engine knows all of it: what is not understood is missing here. */
export type ModuleRequirements = {
  /** Version constraints, such as `~> 1.2, < 1.9` or empty, by address, such as `registry.terraform.io/hashicorp/aws`. */
  providers: ReadonlyMap<string, string>
  /** Sources of the modules that it calls, such as `./network`. */
  modules: readonly string[]
}

const registryOf = { terraform: 'registry.terraform.io', opentofu: 'registry.opentofu.org' } as const
const addressSyntax = /^[a-z0-9][a-z0-9.-]{0,252}(:[0-9]{1,5})?\/[a-z0-9][a-z0-9_-]{0,99}\/[a-z0-9][a-z0-9_-]{0,99}$/
/** Neither an address nor a constraint. */
const unreadable = '?'
const constraintSyntax = /^[\w.,<>=!~ +-]{0,200}$/

/**
 * The providers that the files of a module require: in `required_providers`, and those of its resources and provider blocks that it does not
 * list there. Names of files end in `.json` or are in HCL's native syntax.
 */
export function requiredProviders(files: readonly { name: string; text: string }[], flavor: Flavor['name']): ModuleRequirements {
  const found: Found = { required: new Map(), used: new Set(), modules: new Set() }
  for (const { name, text } of files) (name.endsWith('.json') ? readJson : readNative)(text, found)
  const providers = new Map<string, string>()
  const add = (source: string, version: string) => {
    const address = addressOf(source, flavor)
    if (address === undefined || !constraintSyntax.test(version)) return
    const constraints = [providers.get(address) ?? '', version.trim()].filter(Boolean)
    providers.set(address, [...new Set(constraints)].join(', '))
  }
  for (const [name, { source = name, version = '' }] of found.required) add(source, version)
  for (const name of found.used) if (!found.required.has(name)) add(name, '')
  return { providers, modules: [...found.modules] }
}

/** Undefined for what is built into the engine, and for what is no address. */
function addressOf(source: string, flavor: Flavor['name']): string | undefined {
  const parts = source.toLowerCase().split('/')
  const [type = '', namespace = 'hashicorp', host = registryOf[flavor]] = parts.toReversed()
  const address = `${host}/${namespace}/${type}`
  const isBuiltIn = parts[0] === 'terraform.io' || (parts.length === 1 && type === 'terraform')
  return parts.length <= 3 && !isBuiltIn && addressSyntax.test(address) ? address : undefined
}

type Found = {
  required: Map<string, { source?: string; version?: string }>
  /** Local names. */
  used: Set<string>
  modules: Set<string>
}

const resourceTypes = ['resource', 'data', 'ephemeral']
/** `aws_instance` is of the provider with the local name `aws`. */
const prefixOf = (type: string): string => type.split('_')[0] ?? ''

// ---- native syntax

type Body = { attributes: Map<string, readonly HclToken[]>; blocks: { type: string; labels: string[]; body: () => Body }[] }

function readNative(text: string, found: Found): void {
  for (const { type, labels, body } of bodyOf([...hclTokens(text)]).blocks) {
    const [label = ''] = labels
    if (type === 'terraform') {
      for (const each of body().blocks) if (each.type === 'required_providers') readRequired(each.body().attributes, found)
    } else if (type === 'provider') found.used.add(label)
    else if (type === 'module') {
      const source = literal(body().attributes.get('source'))
      if (source !== undefined) found.modules.add(source)
    } else if (resourceTypes.includes(type)) {
      const [provider] = body().attributes.get('provider') ?? []
      found.used.add(provider?.text ?? prefixOf(label))
    }
  }
}

function readRequired(attributes: Body['attributes'], found: Found): void {
  for (const [name, value] of attributes) {
    const version = literal(value)
    if (version !== undefined) found.required.set(name, { version })
    else if (value[0]?.text === '{') {
      const { attributes: fields } = bodyOf(value.slice(1, -1))
      // What is there and cannot be read makes the entry unknown, instead of one without it.
      const read = (field: string) => (fields.has(field) ? (literal(fields.get(field)) ?? unreadable) : undefined)
      const [source, constraint] = [read('source'), read('version')]
      found.required.set(name, { ...(source !== undefined && { source }), ...(constraint !== undefined && { version: constraint }) })
    }
  }
}

/** The value of a string without templates and escapes. */
function literal(value: readonly HclToken[] = []): string | undefined {
  const [token, ...more] = value
  return token?.kind === 'string' && more.length === 0 && !/[\\$%\n]/.test(token.text) ? token.text : undefined
}

/** Its attributes and blocks; blocks are read when they are needed. Attributes of an object may end with a comma, and have a colon. */
function bodyOf(tokens: readonly HclToken[]): Body {
  const body: Body = { attributes: new Map(), blocks: [] }
  for (let at = 0; at < tokens.length; ) {
    const [name, next] = [tokens[at], tokens[at + 1]]
    if (name?.kind !== 'word' && name?.kind !== 'string') {
      at++
    } else if (next?.text === '=' || next?.text === ':') {
      const end = endOfValue(tokens, at + 2)
      body.attributes.set(name.text, tokens.slice(at + 2, end))
      at = end
    } else {
      const labels: string[] = []
      for (at++; tokens[at]?.kind === 'word' || tokens[at]?.kind === 'string'; at++) labels.push(tokens[at]?.text ?? '')
      if (tokens[at]?.text !== '{') continue
      const [from, end] = [at + 1, indexOfClose(tokens, at)]
      body.blocks.push({ type: name.text, labels, body: () => bodyOf(tokens.slice(from, end)) })
      at = end + 1
    }
  }
  return body
}

function endOfValue(tokens: readonly HclToken[], from: number): number {
  for (let at = from; at < tokens.length; at++) {
    const token = tokens[at]
    if (token?.kind === 'newline' || token?.text === ',') return at
    if (token?.kind === 'open') at = indexOfClose(tokens, at)
  }
  return tokens.length
}

/** The index of the token that closes what the token at `from` opens; the number of tokens if there is none. */
function indexOfClose(tokens: readonly HclToken[], from: number): number {
  let depth = 0
  for (let at = from; at < tokens.length; at++) {
    if (tokens[at]?.kind === 'open') depth++
    if (tokens[at]?.kind === 'close' && --depth === 0) return at
  }
  return tokens.length
}

// ---- JSON syntax

function readJson(text: string, found: Found): void {
  const root = parse(text)
  for (const terraform of objectsOf(root.terraform))
    for (const required of objectsOf(terraform.required_providers))
      for (const [name, value] of Object.entries(required)) {
        if (typeof value === 'string') found.required.set(name, { version: value })
        else if (isJsonObject(value)) {
          const { source, version } = value
          found.required.set(name, {
            ...(typeof source === 'string' && { source }),
            ...(typeof version === 'string' && { version }),
          })
        }
      }
  for (const provider of objectsOf(root.provider)) for (const name of Object.keys(provider)) found.used.add(name)
  for (const each of objectsOf(root.module))
    for (const call of Object.values(each).flatMap(objectsOf)) if (typeof call.source === 'string') found.modules.add(call.source)
  for (const type of resourceTypes)
    for (const each of objectsOf(root[type]))
      for (const [label, named] of Object.entries(each))
        for (const resource of objectsOf(named).flatMap(names => Object.values(names).flatMap(objectsOf))) {
          const { provider } = resource
          found.used.add(typeof provider === 'string' ? (provider.split('.')[0] ?? '') : prefixOf(label))
        }
}

function parse(text: string): Record<string, unknown> {
  try {
    const root: unknown = JSON.parse(text)
    return isJsonObject(root) ? root : {}
  } catch {
    return {}
  }
}

/** A block may be one object or a list of them. */
const objectsOf = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value : [value]).filter(isJsonObject)
