import { join } from 'node:path'
import { openDataIdentity } from '../data-identity.ts'

export type AgentIdentity = { readonly name: string; release(): void }

/**
 * The name of the agent of a data directory: `<host>-<random>`. It is the same after a restart, so that the agent recognizes its claims, and another
 * one for each data directory of a host.
 * @throws {AppStartError} if another process uses the directory, or it cannot be written.
 */
export function openAgentIdentity(dataDir: string, host: string): AgentIdentity {
  const { id, release } = openDataIdentity({ file: join(dataDir, 'agent.db'), dataDir, usedBy: '"oarlock pool"', idBytes: 4 })
  return { name: `${host.slice(0, 200)}-${id}`, release }
}
