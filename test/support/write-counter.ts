import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { oarlockResources } from '../../src/api/index.ts'
import { type Client, createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../src/kubernetes/server/index.ts'

/** An API server with Oarlock's kinds that records the writes of some of its users. */
export class WriteCounter {
  /** `verb resource[/subresource]` of each write of the users, in order. */
  readonly writes: string[] = []
  /** An administrator, whose writes do not count. */
  readonly client: Client
  readonly #server: ApiServer
  readonly #dataDir: string
  readonly #clients: Client[]

  private constructor(server: ApiServer, dataDir: string, client: Client, writes: string[]) {
    this.#server = server
    this.#dataDir = dataDir
    this.client = client
    this.#clients = [client]
    this.writes = writes
  }

  static async start(users: readonly string[]): Promise<WriteCounter> {
    const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-writes-'))
    const writes: string[] = []
    const server = await startServer({
      dataDir,
      listen: { port: 0 },
      storage: { synchronous: 'OFF' },
      authorize: ({ user: { name }, verb, resource, subresource }) => {
        if (users.includes(name) && !['get', 'list', 'watch'].includes(verb))
          writes.push(`${verb} ${resource}${subresource ? `/${subresource}` : ''}`)
        return undefined
      },
    })
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    await installKinds(client, oarlockResources)
    return new WriteCounter(server, dataDir, client, writes)
  }

  /** A client of one of the users, with the rights of an administrator. */
  async clientOf(name: string): Promise<Client> {
    const { url, caCertificate } = this.#server
    const token = this.#server.issueToken({ name, groups: ['system:masters'], ttlMs: 3_600_000 })
    const created = await createClient({ cluster: { server: url, caCertificate, token } })
    this.#clients.push(created)
    return created
  }

  async close(): Promise<void> {
    for (const each of this.#clients.toReversed()) await each.close()
    await this.#server.close()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }
}
