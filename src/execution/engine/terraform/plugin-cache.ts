import { lstat, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * A provider cache for concurrent Runs. Two concurrent `init` can corrupt Terraform's own cache directory, so each Run gets its own
 * directory with symlinks into the shared one; afterwards each provider that it downloaded is moved to the shared cache by one rename.
 * There is no lock that a killed Run could leave behind, and a provider is visible either completely or not at all.
 */
export async function preparePluginCache(shared: string, own: string): Promise<void> {
  await mkdir(shared, { recursive: true })
  await mkdir(own, { recursive: true })
  for (const provider of await providerDirectories(shared)) {
    await mkdir(dirname(join(own, provider)), { recursive: true })
    await symlink(join(shared, provider), join(own, provider))
  }
}

/** Moves the providers that this Run downloaded to the shared cache and replaces them by symlinks. Returns their paths, such as `host/ns/type/1.0.0/os_arch`. */
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
      // Another Run was faster, or the caches are on different file systems: this Run keeps its own copy.
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
