import type { Client } from '../../../src/kubernetes/client/index.ts'
import { type Controller, Manager, type ManagerOptions, silentLog } from '../../../src/kubernetes/controller/index.ts'

export type Provider = AsyncDisposable & { stop(): Promise<void> }

/** A provider in this process, until the end of the scope. */
export async function startProvider(
  client: Client,
  controllerOf: (manager: Manager) => Controller,
  options: Partial<ManagerOptions> = {},
): Promise<Provider> {
  const manager = new Manager({ client, log: silentLog, ...options })
  manager.add(controllerOf(manager))
  await manager.start()
  const stop = () => manager.stop({ graceMs: 2_000 })
  return { stop, [Symbol.asyncDispose]: stop }
}
