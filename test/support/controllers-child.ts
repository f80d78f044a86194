/**
 * The controllers in their own process, with leader election, for tests that pause the process. Settings are in argv. Prints a line for each write
 * that begins: seconds since boot, method, path.
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
