import type { DetectedDependencies, DetectOptions } from '../managers/package-manager.ts'
import { ancestorsOf, joinPath } from '../source-files.ts'
import { InputList } from './input-list.ts'

/**
 * The Go module, or the workspace of modules, that the directory belongs to. Undefined if there is none, and for a module that requires no
 * others or has them in its `vendor` directory: nothing is downloaded then.
 */
export async function detectGo({ source, directory }: DetectOptions): Promise<DetectedDependencies | undefined> {
  const ancestors = ancestorsOf(directory)
  const nearest = async (name: string): Promise<string | undefined> => {
    for (const path of ancestors) if (await source.exists(joinPath(path, name))) return path
    return undefined
  }
  const module = await nearest('go.mod')
  if (module === undefined) return undefined
  const workspace = await nearest('go.work')
  const root = workspace ?? module
  if (await source.exists(joinPath(root, 'vendor/modules.txt'))) return undefined
  const inputs = new InputList(source)
  const pending = [module]
  if (workspace !== undefined) {
    const text = (await source.text(joinPath(workspace, 'go.work')))!
    for (const name of ['go.work', 'go.work.sum']) await inputs.add('lockFile', joinPath(workspace, name))
    for (const path of usedModules(text)) pending.push(source.resolve(workspace, path, 'go.work'))
    for (const path of localReplacements(text)) pending.push(source.resolve(workspace, path, 'go.work'))
  }
  const seen = new Set<string>()
  let requires = false
  for (let path = pending.shift(); path !== undefined; path = pending.shift()) {
    if (seen.has(path)) continue
    seen.add(path)
    const manifest = joinPath(path, 'go.mod')
    const text = await source.text(manifest)
    if (text === undefined) continue
    requires ||= /^\s*require\b/m.test(text)
    await inputs.add('manifest', manifest)
    await inputs.add('lockFile', joinPath(path, 'go.sum'))
    // Their files are used in the source. What they require is downloaded.
    for (const target of localReplacements(text)) pending.push(source.resolve(path, target, manifest))
  }
  if (!requires) return undefined
  const isLocked = inputs.list.some(({ name }) => name.endsWith('go.sum') || name.endsWith('go.work.sum'))
  return { manager: 'go', root, isLocked, inputs: inputs.list }
}

const withoutComments = (text: string): string => text.replaceAll(/\/\/.*$/gm, '')

/** https://go.dev/ref/mod#go-work-file */
function usedModules(text: string): string[] {
  const plain = withoutComments(text)
  const blocks = [...plain.matchAll(/^\s*use\s*\(([^)]*)\)/gm)].flatMap(([, block]) => block!.split('\n'))
  const single = [...plain.matchAll(/^\s*use\s+([^(\s]\S*)/gm)].map(([, path]) => path!)
  return [...blocks, ...single].map(unquote).filter(path => path !== '')
}

/** Those that name a directory: https://go.dev/ref/mod#go-mod-file-replace */
function localReplacements(text: string): string[] {
  return [...withoutComments(text).matchAll(/=>\s*("[^"]+"|\S+)/g)]
    .map(([, target]) => unquote(target!))
    .filter(target => /^\.{1,2}(\/|$)/.test(target))
}

const unquote = (text: string): string => text.trim().replace(/^"(.*)"$/, '$1')
