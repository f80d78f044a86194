import { dirname, join } from 'node:path'
import type { RootDirectory } from '../../../kubernetes/util/index.ts'

/** A directory of plugins: `path` is below the root of `files`. */
export type PluginDirectory = { files: RootDirectory; path: string }

/**
 * A provider cache for concurrent Runs. Two concurrent `init` can corrupt Terraform's own cache directory, so each Run gets its own
 * directory with symlinks into the shared one; afterwards each provider that it downloaded is moved to the shared cache by one rename.
 * There is no lock that a killed Run could leave behind, and a provider is visible either completely or not at all.
 */
export async function preparePluginCache(shared: PluginDirectory, own: PluginDirectory): Promise<void> {
  await shared.files.makeDirectory(shared.path, 0o755)
  await own.files.makeDirectory(own.path, 0o755)
  for (const provider of await providerDirectories(shared)) await linkProvider(provider, shared, own)
}

/** Moves the providers that this Run downloaded to the shared cache and replaces them by symlinks. Returns their paths, such as `host/ns/type/1.0.0/os_arch`. */
export async function sharePlugins(shared: PluginDirectory, own: PluginDirectory): Promise<string[]> {
  const added: string[] = []
  for (const provider of await providerDirectories(own)) {
    const from = join(own.path, provider)
    if ((await own.files.kindOf(from)) !== 'directory') continue
    const to = join(shared.path, provider)
    await shared.files.makeDirectory(dirname(to), 0o755)
    // If another Run was faster, or the caches are on different file systems, this Run keeps its own copy.
    if (!(await own.files.move(from, shared.files, to))) continue
    await linkProvider(provider, shared, own)
    added.push(provider)
  }
  return added
}

async function linkProvider(provider: string, shared: PluginDirectory, own: PluginDirectory): Promise<void> {
  await own.files.makeDirectory(dirname(join(own.path, provider)), 0o755)
  await own.files.createLink(join(own.path, provider), join(shared.files.root, shared.path, provider))
}

/** Relative paths of the directories five levels down: host, namespace, type, version, platform. */
async function providerDirectories({ files, path }: PluginDirectory): Promise<string[]> {
  let level = ['']
  for (let depth = 0; depth < 5; depth++) {
    const next: string[] = []
    for (const directory of level) {
      for (const { name, kind } of await files.list(join(path, directory))) {
        if (kind === 'directory' || (depth === 4 && kind === 'symlink')) next.push(join(directory, name))
      }
    }
    level = next
  }
  return level
}
