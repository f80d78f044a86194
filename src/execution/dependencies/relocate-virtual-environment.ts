import { join, relative } from 'node:path'
import type { RootDirectory } from '../../kubernetes/util/index.ts'

const maxScriptBytes = 1024 ** 2
/** The first lines of a script of a virtual environment, as pip, uv and poetry write them; the second form is for long paths. */
const interpreterLine = /^#!(?:\/bin\/sh\n'''exec' "?([^"\n]+?)"? "\$0" "\$@"\n' '''|(\S+))\n/

/**
 * Makes a virtual environment independent of its path, which is another one in each Run: scripts in `bin` find the interpreter next to them, and
 * packages of the source that are installed as editable are found relative to the environment. The interpreter itself finds its packages
 * relative to its own path (https://docs.python.org/3/library/site.html). No program may be running.
 */
export async function relocateVirtualEnvironment(files: RootDirectory, environment: string, sourceRoot: string): Promise<void> {
  const bin = join(environment, 'bin')
  for (const { name, kind } of await files.list(bin)) {
    if (kind === 'file') await rewrite(files, join(bin, name), text => relocateScript(text, environment))
  }
  const lib = join(environment, 'lib')
  for (const { name, kind } of await files.list(lib)) {
    if (kind !== 'directory' || !name.startsWith('python')) continue
    const packages = join(lib, name, 'site-packages')
    for (const entry of await files.list(packages)) {
      if (entry.kind !== 'file') continue
      if (entry.name.endsWith('.pth')) await rewrite(files, join(packages, entry.name), text => relocatePaths(text, packages, sourceRoot))
      // Written by setuptools: a table of packages and their directories.
      else if (/^__editable__.*_finder\.py$/.test(entry.name))
        await rewrite(files, join(packages, entry.name), text => relocateLiterals(text, packages, sourceRoot))
    }
  }
}

async function rewrite(files: RootDirectory, path: string, change: (text: string) => string): Promise<void> {
  const content = await files.read(path, { maxBytes: maxScriptBytes }).catch(() => undefined)
  const text = content?.toString('utf8')
  // Not text.
  if (!content || text === undefined || !Buffer.from(text).equals(content)) return
  const changed = change(text)
  if (changed !== text) await files.write(path, changed, (await files.isExecutable(path)) ? 0o755 : 0o644)
}

/** Python reads the second line as a string, and the shell executes it. */
export function relocateScript(text: string, environment: string): string {
  const found = interpreterLine.exec(text)
  const interpreter = found?.[1] ?? found?.[2]
  if (!found || !interpreter?.startsWith(`${join(environment, 'bin')}/`)) return text
  const name = interpreter.slice(join(environment, 'bin').length + 1)
  const start = `#!/bin/sh\n'''exec' "$(dirname -- "$(realpath -- "$0")")/${name}" "$0" "$@"\n' '''\n`
  return start + text.slice(found[0].length)
}

/** Lines of a .pth file are relative to its directory. */
export function relocatePaths(text: string, directory: string, sourceRoot: string): string {
  const isInSource = (line: string) => line === sourceRoot || line.startsWith(`${sourceRoot}/`)
  return text
    .split('\n')
    .map(line => (isInSource(line.trimEnd()) ? relative(directory, line.trimEnd()) : line))
    .join('\n')
}

export function relocateLiterals(text: string, directory: string, sourceRoot: string): string {
  return text.replaceAll(/'(\/[^'\\\n]*)'/g, (literal, path: string) => {
    if (path !== sourceRoot && !path.startsWith(`${sourceRoot}/`)) return literal
    return `__import__('os').path.normpath(__import__('os').path.join(__import__('os').path.dirname(__file__), '${relative(directory, path)}'))`
  })
}
