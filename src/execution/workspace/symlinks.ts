import { readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Where a symlink at `path` (relative to `root`, itself free of symlinks above its last part) leads, or undefined if that is outside
 * of the tree. Walks part by part, following the links of the tree, so that `a/../../x` with a symlink `a` cannot fool it,
 * and also works for targets that do not exist (yet).
 */
export function resolveInside(
  root: string,
  path: string,
  readLink: (path: string) => string | undefined = readLinkOrNothing,
): string | undefined {
  let done: string[] = []
  let rest = path.split('/')
  for (let follows = 0; rest.length > 0; ) {
    const part = rest[0]!
    rest = rest.slice(1)
    if (part === '' || part === '.') continue
    if (part === '..') {
      if (done.length === 0) return undefined
      done = done.slice(0, -1)
      continue
    }
    const target = readLink(join(root, ...done, part))
    if (target === undefined) {
      done = [...done, part]
      continue
    }
    // A loop leads nowhere; nobody can read through it, but it is never wanted either.
    if (target.startsWith('/') || ++follows > 40) return undefined
    rest = [...target.split('/'), ...rest]
  }
  return done.join('/')
}

function readLinkOrNothing(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** True if `path` is `parent` or lies in it. Both absolute and without `..`. */
export function isWithin(path: string, parent: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if (at === parent) return true
    if (at === dirname(at)) return false
  }
}
