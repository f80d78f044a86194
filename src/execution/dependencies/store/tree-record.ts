import type { DependencyInput } from '../dependency-input.ts'

/** Where a tree belongs: `source` is the root of the Run's source, `scratch` its directory for files that are no part of it. */
export type TreePlace = { readonly base: 'source' | 'scratch'; readonly path: string }

/** What is stored with the trees of one digest. */
export type TreeRecord = {
  readonly formatVersion: 1
  readonly digest: string
  readonly manager: string
  readonly inputs: readonly DependencyInput[]
  /** Tree number n is in the directory `t/n` of the entry. */
  readonly trees: readonly TreePlace[]
  /** Files that the install has created in the source outside of the trees, such as those that a `prepare` script has built. */
  readonly produced: readonly string[]
  readonly files: number
  /** On disk. */
  readonly bytes: number
  /** Of the text of the manifest. */
  readonly manifestDigest: string
  readonly installSeconds: number
  /** RFC 3339. */
  readonly installedAt: string
  readonly installedBy: string
}

export const recordName = 'record.json'
export const manifestName = 'files'
export const sealName = 'seal'
export const treesName = 't'
export const producedName = 'produced'

/** Undefined if the text is not one that this version has written. */
export function parseTreeRecord(text: string, digest: string): TreeRecord | undefined {
  try {
    const record = JSON.parse(text) as TreeRecord
    const isValid =
      record.formatVersion === 1 &&
      record.digest === digest &&
      Array.isArray(record.trees) &&
      Array.isArray(record.produced) &&
      typeof record.manifestDigest === 'string' &&
      Number.isSafeInteger(record.bytes)
    return isValid ? record : undefined
  } catch {
    return undefined
  }
}
