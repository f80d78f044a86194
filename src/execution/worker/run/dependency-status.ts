import type { RunStatus } from '../../../api/index.ts'
import type { InstalledDependencies } from '../../dependencies/index.ts'

const sources = { Found: 'Cached', Waited: 'Waited', Installed: 'Installed' } as const

/** What the status of a Run reports of its dependencies. */
export function dependencyStatus({
  digest,
  manager,
  how,
  seconds,
  installSeconds,
  bytes,
}: Omit<InstalledDependencies, 'attachedAs' | 'env' | 'inputs'>): NonNullable<RunStatus['dependencies']> {
  return { digest, manager, source: sources[how], seconds, installSeconds, bytes }
}
