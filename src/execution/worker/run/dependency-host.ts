import { join } from 'node:path'
import type { Run } from '../../../api/index.ts'
import type { DependencyHost, InstalledDependencies } from '../../dependencies/index.ts'
import { killRunProcesses, type RunIsolation } from '../../workspace/index.ts'
import { trustDomainOf } from './trust-domain.ts'

export type DependencyHostOptions = { cacheDir: string; dependencyCacheBytes?: number | undefined }

/** What this worker provides for the dependencies of a Run: trees that it shares with those of its trust domain. */
export function createDependencyHost(
  run: Run,
  isolation: RunIsolation,
  { cacheDir, dependencyCacheBytes }: DependencyHostOptions,
  onInstalled: (installed: InstalledDependencies) => void,
): DependencyHost {
  const { level, network } = isolation.effective
  return {
    store: { directory: join(cacheDir, 'dependencies'), domain: trustDomainOf(run), maxBytes: dependencyCacheBytes },
    isolation,
    // With the network of the machine a program could have passed an open file through an abstract Unix socket.
    mayMoveFiles: level === 'Sandbox' && network !== 'Host',
    endPrograms: async () => {
      await killRunProcesses(run.metadata.uid)
    },
    onInstalled,
  }
}
