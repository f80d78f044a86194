import { readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The path within `root` that `path` resolves to, or undefined if it is outside of `root`. `path` is relative to `root`. Resolves one
 * component after the other, so that `a/../../x` with a symlink `a` is resolved correctly. The target need not exist.
 */
export function resolveInside(
  root: string,
  path: string,
  readLink: (path: string) => string | undefined = readLinkIfPresent,
): string | undefined {
  let resolved: string[] = []
  let remaining = path.split('/')
  for (let follows = 0; remaining.length > 0; ) {
    const part = remaining[0]!
    remaining = remaining.slice(1)
    if (part === '' || part === '.') continue
    if (part === '..') {
      if (resolved.length === 0) return undefined
      resolved = resolved.slice(0, -1)
      continue
    }
    const target = readLink(join(root, ...resolved, part))
    if (target === undefined) {
      resolved = [...resolved, part]
      continue
    }
    // A symlink loop cannot be read, and is never intended.
    if (target.startsWith('/') || ++follows > 40) return undefined
    remaining = [...target.split('/'), ...remaining]
  }
  return resolved.join('/')
}

function readLinkIfPresent(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** True if `path` is `parent` or is below it. Both are absolute and without `..`. */
export function isWithin(path: string, parent: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if (at === parent) return true
    if (at === dirname(at)) return false
  }
}
