import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { startServer } from '../../src/kubernetes/server/index.ts'
import { createPool, groupsOf, type Target } from './target.ts'

/** Starts the embedded server in this process, in a temporary directory. */
export async function startEmbeddedServer(): Promise<Target> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-conformance-'))
  const server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' }, namespaceDefaults: false })
  const pool = createPool(server.url)
  const config: { users: { user: { token: string } }[] } = parse(readFileSync(server.kubeconfigPath, 'utf8'))
  const others = Object.entries(groupsOf).filter(([name]) => name !== 'admin')
  return {
    url: server.url,
    tokens: {
      admin: config.users[0]?.user.token ?? '',
      ...Object.fromEntries(others.map(([name, group]) => [name, server.issueToken({ name, groups: [group], ttlMs: 3_600_000 })])),
      wrong: 'no-such-token',
    },
    pool,
    async close() {
      await pool.destroy()
      await server.close({ graceMs: 200 })
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
