import { resolve } from 'node:path'
import { partitions } from '../../app/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { writeSecretFile } from '../../kubernetes/server/index.ts'
import { dataDirectory } from '../access.ts'
import { usageError } from '../cli-error.ts'
import { dataError } from '../data-error.ts'
import { startError } from '../start-error.ts'
import { print } from '../terminal.ts'

export type AddGatewayOptions = { data?: string; server: string; tlsSan: string[]; to: string; kubeconfigTo: string; ttl: string }

/** `oarlock partition add-gateway`: writes what a gateway needs to start. */
export async function addGateway({ data, server, tlsSan, to, kubeconfigTo, ttl }: AddGatewayOptions): Promise<void> {
  if (!/^https:\/\/[^/\s]+$/.test(server))
    throw usageError(`invalid --server ${JSON.stringify(server)}`, 'it must be like https://10.0.0.1:7471')
  const { formatConfiguration, issueGatewayConfiguration } = await partitions()
  const file = resolve(to)
  try {
    const host = new URL(server).hostname.replace(/^\[|\]$/g, '')
    const names = [...new Set(['localhost', '127.0.0.1', '::1', host, ...tlsSan])]
    const issued = await issueGatewayConfiguration(dataDirectory(data), { names, server, ttlMs: parseDuration(ttl) }, Date.now())
    const { configuration, kubeconfig } = issued
    writeSecretFile(file, formatConfiguration(configuration))
    writeSecretFile(resolve(kubeconfigTo), kubeconfig)
    print(`a gateway of home ${configuration.home.server} starts with this file:`)
    print(`  oarlock gateway --config ${file}`)
    print('and this is how the administrator of home uses it:')
    print(`  kubectl --kubeconfig ${resolve(kubeconfigTo)} get namespaces`)
  } catch (error) {
    throw startError(dataError(error), 'partition add-gateway')
  }
}
