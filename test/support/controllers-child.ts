/**
 * The controllers in a process of their own, under leader election, for tests that stop it: settings in argv. Each write that they
 * begin is a line: seconds since boot, method, path.
 */
import { uptime } from 'node:os'
import { createClient, type RequestOptions, WrappedClient } from '../../src/kubernetes/client/index.ts'
import { startControllers } from './start-controllers.ts'

class LoggedWrites extends WrappedClient {
  override request(options: RequestOptions) {
    if (options.method !== 'GET') process.stdout.write(`${uptime()} ${options.method} ${options.path}\n`)
    return this.inner.request(options)
  }
}

const { server, caCertificate, token, identity } = JSON.parse(process.argv[2] ?? '{}') as Record<string, string>
const client = await createClient({ cluster: { server: server!, caCertificate, token } })
await startControllers(new LoggedWrites(client), identity!)
