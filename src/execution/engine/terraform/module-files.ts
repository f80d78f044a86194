import { join, relative } from 'node:path'
import type { EntryKind } from '../../../kubernetes/util/index.ts'
import { resolveInside } from '../../workspace/index.ts'
import type { WarmContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import type { Flavor } from './flavor.ts'

const maxModuleFiles = 10_000
const maxModuleFileBytes = 16 * 1024 * 1024

/**
 * The names of the files that the engine reads as a root module. Both ignore hidden files; only OpenTofu reads `a.tofu` and `a.tofu.json`,
 * in place of `a.tf` and `a.tf.json`.
 */
export function moduleFileNames(names: readonly string[], flavor: Flavor['name']): string[] {
  const all = new Set(names)
  return names.filter(name => {
    if (name.startsWith('.')) return false
    if (/\.tf(\.json)?$/.test(name)) return flavor !== 'opentofu' || !all.has(name.replace(/\.tf(\.json)?$/, '.tofu$1'))
    return flavor === 'opentofu' && /\.tofu(\.json)?$/.test(name)
  })
}

/** The files of the root module. Symlinks inside the source are followed; the engine reports what else it cannot read. */
export async function rootModuleFiles(context: WarmContext, flavor: Flavor['name']): Promise<{ name: string; text: string }[]> {
  const kinds = new Map((await context.files.list(context.directory)).map(({ name, kind }) => [name, kind]))
  const names = moduleFileNames([...kinds.keys()], flavor)
  if (names.length > maxModuleFiles) {
    const message = `the root module has ${names.length} files; at most ${maxModuleFiles} are allowed`
    throw new EngineError('InvalidConfiguration', message, { retryable: false })
  }
  const found: { name: string; text: string }[] = []
  for (const name of names) {
    const text = await readModuleFile(context, name, kinds.get(name))
    if (text !== undefined) found.push({ name, text })
  }
  return found
}

/** A file of the root module, also if it is a symlink inside the source; undefined if there is none. */
export async function readModuleFile(
  { files, directory, sourceRoot }: WarmContext,
  name: string,
  kind: EntryKind | undefined,
  maxBytes = maxModuleFileBytes,
): Promise<string | undefined> {
  const inside = kind === 'symlink' ? resolveInside(sourceRoot, relative(sourceRoot, join(directory, name))) : undefined
  const path = kind === 'file' ? join(directory, name) : inside !== undefined && join(sourceRoot, inside)
  if (!path || (await files.kindOf(path)) !== 'file') return undefined
  return await files.readText(path, { maxBytes })
}
