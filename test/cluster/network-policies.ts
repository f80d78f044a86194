/**
 * Enforces the NetworkPolicies of a cluster, which the `bridge` plugin of its nodes does not: what a network plugin of a user's cluster would do. Only
 * what the chart uses: ingress, with selectors by labels and numbers of ports.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { describeResource } from '../../src/kubernetes/object/index.ts'
import type { Cluster } from './cluster.ts'

type Selector = { readonly matchLabels?: Readonly<Record<string, string>> }
type Peer = { readonly namespaceSelector?: Selector; readonly podSelector?: Selector }
type PolicySpec = {
  readonly podSelector: Selector
  readonly policyTypes?: readonly string[]
  readonly ingress?: readonly { readonly from?: readonly Peer[]; readonly ports?: readonly { port: number; protocol?: string }[] }[]
}
type Labels = Readonly<Record<string, string>>
export type PolicyObject = { readonly metadata: { readonly namespace?: string }; readonly spec: PolicySpec }
export type PodObject = {
  readonly metadata: { readonly namespace?: string; readonly labels?: Labels }
  readonly status?: { readonly podIP?: string; readonly phase?: string }
}
export type NamespaceObject = { readonly metadata: { readonly name: string; readonly labels?: Labels } }

const core = { group: '', version: 'v1' } as const
const podResource = describeResource<{ spec: object; status?: PodObject['status'] }>({
  ...{ ...core, kind: 'Pod', plural: 'pods', scope: 'Namespaced' },
})
const namespaceResource = describeResource<object>({ ...core, kind: 'Namespace', plural: 'namespaces', scope: 'Cluster' })
const policyResource = describeResource<{ spec: PolicySpec }>({
  ...{ group: 'networking.k8s.io', version: 'v1', kind: 'NetworkPolicy', plural: 'networkpolicies', scope: 'Namespaced' },
})

/** Applies the policies to all nodes, again and again as Pods come and go, until `close`. */
export class NetworkPolicyEnforcer {
  readonly #cluster: Cluster
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined
  #applied = ''

  private constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  static async start(cluster: Cluster): Promise<NetworkPolicyEnforcer> {
    const enforcer = new NetworkPolicyEnforcer(cluster)
    // Frames between Pods of one node pass the rules, too.
    for (const node of cluster.nodes) node.execute('sysctl', ['-qw', 'net.bridge.bridge-nf-call-iptables=1'])
    await enforcer.#apply()
    enforcer.#running = enforcer.#run()
    return enforcer
  }

  /** @throws {Error} if the rules could not be applied. */
  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await sleep(300)
      await this.#apply()
    }
  }

  async #apply(): Promise<void> {
    const { client, nodes } = this.#cluster
    const [pods, namespaces, policies] = await Promise.all([
      client.resource(podResource).listAll(),
      client.resource(namespaceResource).listAll(),
      client.resource(policyResource).listAll(),
    ])
    const rules = rulesOf({ pods: pods.items, namespaces: namespaces.items, policies: policies.items })
    if (rules === this.#applied) return
    for (const node of nodes) node.execute('nft', ['-f', '-'], rules)
    this.#applied = rules
  }
}

/** The rules of nftables, which replace those before. What is from the node itself, such as probes of the kubelet, is not forwarded and passes. */
export function rulesOf({
  pods,
  namespaces,
  policies,
}: {
  pods: readonly PodObject[]
  namespaces: readonly NamespaceObject[]
  policies: readonly PolicyObject[]
}): string {
  const labelsOfNamespace = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]))
  const running = pods.filter(({ status }) => status?.podIP !== undefined && status.phase === 'Running')
  const addressOf = ({ status }: PodObject) => status!.podIP as string
  const accepted: string[] = []
  const isolated = new Set<string>()
  for (const { metadata, spec } of policies) {
    if ((spec.policyTypes ?? ['Ingress']).some(type => type !== 'Ingress')) throw new Error('only ingress is enforced')
    const selected = running.filter(pod => pod.metadata.namespace === metadata.namespace && matches(spec.podSelector, pod.metadata.labels))
    for (const target of selected) {
      isolated.add(addressOf(target))
      for (const { from, ports = [] } of spec.ingress ?? []) {
        const isPeer = (pod: PodObject) =>
          from?.some(({ namespaceSelector, podSelector = {} }) => {
            const { namespace = '', labels } = pod.metadata
            const isNamespace = namespaceSelector
              ? matches(namespaceSelector, labelsOfNamespace.get(namespace))
              : namespace === metadata.namespace
            return isNamespace && matches(podSelector, labels)
          })
        const sources = from === undefined ? [''] : running.filter(isPeer).map(pod => `ip saddr ${addressOf(pod)} `)
        for (const source of sources) {
          const to = `${source}ip daddr ${addressOf(target)}`
          accepted.push(...(ports.length === 0 ? [`${to} accept`] : ports.map(({ port }) => `${to} tcp dport ${port} accept`)))
        }
      }
    }
  }
  return `table inet policies
delete table inet policies
table inet policies {
  chain forward {
    type filter hook forward priority 10; policy accept;
    ct state established,related accept
${[...new Set(accepted)].map(rule => `    ${rule}`).join('\n')}
${[...isolated].map(address => `    ip daddr ${address} drop`).join('\n')}
  }
}
`
}

function matches(selector: Selector, labels: Labels = {}): boolean {
  const unknown = Object.keys(selector).filter(key => key !== 'matchLabels')
  if (unknown.length > 0) throw new Error(`${unknown.join(', ')} of a selector is not enforced`)
  return Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value)
}
