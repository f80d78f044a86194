import { existsSync, readFileSync } from 'node:fs'
import type { ApiServer } from '../../kubernetes/server/index.ts'
import type { Address } from '../address.ts'

/**
 * With port 0, tries the port of the previous process first, so that workers and kubeconfigs that survived a crash reach this one. If
 * that port is in use, any free one is taken.
 */
export async function startOnPreviousPort(
  listen: Address,
  kubeconfigPath: string,
  start: (address: Address) => Promise<ApiServer>,
): Promise<ApiServer> {
  const port = listen.port === 0 ? await previousPort(kubeconfigPath) : undefined
  if (port === undefined) return await start(listen)
  try {
    return await start({ ...listen, port })
  } catch (error) {
    if ((error as { code?: string }).code !== 'AddressInUse') throw error
    return await start(listen)
  }
}

/** Undefined without a kubeconfig, and for one that has no server with a port. */
export async function previousPort(kubeconfigPath: string): Promise<number | undefined> {
  if (!existsSync(kubeconfigPath)) return undefined
  const { parse } = await import('yaml')
  try {
    const config = parse(readFileSync(kubeconfigPath, 'utf8')) as { clusters?: { cluster?: { server?: string } }[] } | null
    return Number(new URL(config?.clusters?.[0]?.cluster?.server ?? '').port) || undefined
  } catch {
    // Not written by a server.
    return undefined
  }
}
