import { sha256 } from '../../kubernetes/util/index.ts'

/** Something that the result of an install depends on. `value` is a version, `sha256:` of a content, or `scrypt:` of a secret. Neither part is a secret. */
export type DependencyInput = { readonly kind: DependencyInputKind; readonly name: string; readonly value: string }

export type DependencyInputKind =
  | 'manager'
  | 'runtime'
  | 'platform'
  | 'manifest'
  | 'lockFile'
  | 'patch'
  | 'configuration'
  | 'localPackage'
  | 'environment'
  /** Without a lock file: the day of the install, so that newer versions of packages are used from the next day on. */
  | 'resolvedOn'

/** Part of every digest. A change of the meaning of inputs, or of what is stored, changes it. */
const formatVersion = 'oarlock dependencies 2'

/**
 * The digest of inputs in any order, in hexadecimal: SHA-256 of their canonical list, one JSON array a line, sorted. Equal inputs on equal
 * machines mean one tree; the same kind and name twice count once if their values are equal.
 */
export function dependencyDigest(inputs: readonly DependencyInput[]): string {
  const lines = new Set(inputs.map(({ kind, name, value }) => JSON.stringify([kind, name, value])))
  return sha256([formatVersion, ...[...lines].sort()].join('\n'))
}
