import { isJsonObject, type KubeObject, StatusError } from '../../object/index.ts'

/** In this order. An address needs no name service, which could send the connection elsewhere. */
const addressTypes = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS']

/**
 * Where the kubelet of a Node listens, as the Node itself reports it. The report is not trusted: the connection is used only when the
 * certificate of the other side is for the name of the Node (`kubelet-connection.ts`).
 * @throws {StatusError} ServiceUnavailable for a Node that has not reported it.
 */
export function kubeletAddress(node: KubeObject): { host: string; port: number } {
  const { addresses, daemonEndpoints } = fields(node.status)
  const { Port: port } = fields(fields(daemonEndpoints).kubeletEndpoint)
  const known = Array.isArray(addresses) ? addresses.map(fields) : []
  const host = addressTypes.flatMap(type => known.filter(each => each.type === type))[0]?.address
  if (typeof host !== 'string' || host === '' || typeof port !== 'number' || port < 1 || port > 65_535) {
    throw new StatusError('ServiceUnavailable', `node ${node.metadata.name} has not reported the address and port of its kubelet yet`)
  }
  return { host, port }
}

const fields = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {})
