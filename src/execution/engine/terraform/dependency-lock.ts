import { type HclToken, hclTokens } from './hcl-blocks.ts'

export const dependencyLockName = '.terraform.lock.hcl'

/** What a dependency lock file has about a provider. */
export type LockedProvider = {
  version: string
  /** `h1:` of the unpacked package, or `zh:` of an archive; of any platform. */
  hashes: readonly string[]
  /** Where the elements of `hashes` are in the text; undefined if it has no such list. */
  list: { from: number; to: number } | undefined
}

/** The providers of a dependency lock file by address, such as `registry.terraform.io/hashicorp/aws`. What is not understood is skipped: the engine reports errors. */
export function readDependencyLock(text: string): Map<string, LockedProvider> {
  const providers = new Map<string, LockedProvider>()
  const tokens = [...hclTokens(text)].filter(({ kind }) => kind !== 'newline')
  for (let at = 0; at < tokens.length; ) {
    const [type, address, open] = tokens.slice(at, at + 3)
    if (type?.text !== 'provider' || address?.kind !== 'string' || open?.text !== '{') {
      at++
      continue
    }
    const end = indexOfClose(tokens, at + 2)
    providers.set(address.text, readProvider(tokens.slice(at + 3, end)))
    at = end + 1
  }
  return providers
}

/** The same file, with `hashes` as the only ones of this provider. */
export function withHashes(text: string, address: string, hashes: readonly string[]): string {
  const list = readDependencyLock(text).get(address)?.list
  if (!list) return text
  return `${text.slice(0, list.from)}\n${hashes.map(hash => `    "${hash}",\n`).join('')}  ${text.slice(list.to)}`
}

function readProvider(tokens: readonly HclToken[]): LockedProvider {
  const found: LockedProvider = { version: '', hashes: [], list: undefined }
  for (const [at, { kind, text }] of tokens.entries()) {
    const [equals, value] = [tokens[at + 1], tokens[at + 2]]
    if (kind !== 'word' || equals?.text !== '=' || !value) continue
    if (text === 'version' && value.kind === 'string') found.version = value.text
    if (text === 'hashes' && value.text === '[') {
      const end = indexOfClose(tokens, at + 2)
      found.hashes = tokens.slice(at + 3, end).flatMap(token => (token.kind === 'string' ? [token.text] : []))
      found.list = { from: value.at + 1, to: tokens[end]?.at ?? value.at + 1 }
    }
  }
  return found
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
