import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createSha256 } from '../../kubernetes/util/index.ts'

/** `sha256:<hex>` of names and contents, independent of the order of the files. */
export function inlineRevision(files: Readonly<Record<string, string>>): string {
  const hash = createSha256()
  for (const name of Object.keys(files).sort()) {
    for (const text of [name, files[name]!]) {
      const bytes = Buffer.from(text)
      hash.update(`${bytes.length}:`).update(bytes)
    }
  }
  return `sha256:${hash.digest('hex')}`
}

/** Writes the files and makes those that begin with `#!` executable. The names have passed `validateSource`. */
export async function writeInline(files: Readonly<Record<string, string>>, directory: string): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name)
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(path, content, { mode: content.startsWith('#!') ? 0o755 : 0o644, flag: 'wx' })
  }
}
