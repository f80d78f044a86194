import { lstat, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * A provider cache that many Runs can use at once. Terraform's own cache directory may be corrupted by two `init` at a time, so each Run
 * gets a directory of its own, filled with links into the shared one; what it downloaded is moved over afterwards by one rename.
 * No lock is held, so a killed Run leaves none behind (only a whole or an absent provider is ever visible).
 */
export async function preparePluginCache(shared: string, own: string): Promise<void> {
  await mkdir(shared, { recursive: true })
  await mkdir(own, { recursive: true })
  for (const provider of await providerDirectories(shared)) {
    await mkdir(dirname(join(own, provider)), { recursive: true })
    await symlink(join(shared, provider), join(own, provider))
  }
}

/** Moves the providers that this Run added into the shared cache, and links them back. Returns their paths, such as `host/ns/type/1.0.0/os_arch`. */
export async function sharePlugins(shared: string, own: string): Promise<string[]> {
  const added: string[] = []
  for (const provider of await providerDirectories(own)) {
    const from = join(own, provider)
    if ((await lstat(from)).isSymbolicLink()) continue
    const to = join(shared, provider)
    await mkdir(dirname(to), { recursive: true })
    try {
      await rename(from, to)
    } catch (error) {
      // Another Run was first, or the Run lies on another file system: this Run keeps its own copy.
      if (['ENOTEMPTY', 'EEXIST', 'EXDEV', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) continue
      throw error
    }
    await rm(from, { recursive: true, force: true })
    await symlink(to, from)
    added.push(provider)
  }
  return added
}

/** Relative paths of the directories five levels down: host, namespace, type, version, platform. */
async function providerDirectories(root: string): Promise<string[]> {
  let level = ['']
  for (let depth = 0; depth < 5; depth++) {
    const next: string[] = []
    for (const directory of level) {
      for (const entry of await readdir(join(root, directory), { withFileTypes: true })) {
        if (entry.isDirectory() || (depth === 4 && entry.isSymbolicLink())) next.push(join(directory, entry.name))
      }
    }
    level = next
  }
  return level
}
