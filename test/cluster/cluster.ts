import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeOciArchive } from '../../image/oci-archive.ts'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { describeResource } from '../../src/kubernetes/object/index.ts'
import { type Audit, ControlPlane } from './control-plane.ts'
import { ClusterNetwork } from './network.ts'
import { ClusterNode, pauseImage } from './node.ts'
import { built } from './programs.ts'

type NodeCondition = { type: string; status: string; lastHeartbeatTime?: string }
const nodeResource = describeResource<{ status?: { conditions?: NodeCondition[] } }>({
  ...{ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' },
})

export type ClusterOptions = {
  /** Default: 1. With 0 none can be added. */
  readonly nodes?: number
  /** OCI archives that each node gets. */
  readonly images?: readonly string[]
  /** How long a node may not report before it is NotReady. Default: 40 s, as kube-controller-manager. */
  readonly monitorGraceSeconds?: number
  /** Whether kube-apiserver records its requests in {@link ControlPlane.auditLog}: `Writes` without reads. Default: not. */
  readonly audit?: Audit | undefined
}

/**
 * A Kubernetes cluster of real components on this machine, with a real kubelet and containerd for each node, in network namespaces of its own.
 * Not there: a storage provisioner (use PersistentVolumes of type hostPath), a load balancer, and enforcement of NetworkPolicies.
 */
export class Cluster {
  readonly directory: string
  readonly network: ClusterNetwork
  readonly controlPlane: ControlPlane
  readonly kubeconfig: string
  readonly client: Client
  readonly nodes: ClusterNode[] = []
  readonly #images: string[]

  private constructor(parts: { directory: string; network: ClusterNetwork; controlPlane: ControlPlane; client: Client; images: string[] }) {
    this.directory = parts.directory
    this.network = parts.network
    this.controlPlane = parts.controlPlane
    this.client = parts.client
    this.kubeconfig = join(parts.directory, 'control-plane', 'admin.kubeconfig')
    this.#images = parts.images
  }

  static async start({ nodes = 1, images = [], monitorGraceSeconds = 40, audit }: ClusterOptions = {}): Promise<Cluster> {
    const id = randomBytes(2).toString('hex')
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-cluster-'))
    const network = new ClusterNetwork(id)
    let cluster: Cluster | undefined
    let controlPlane: ControlPlane | undefined
    try {
      controlPlane = await ControlPlane.start(join(directory, 'control-plane'), network, { monitorGraceSeconds, audit })
      const client = await createClient({ kubeconfig: join(directory, 'control-plane', 'admin.kubeconfig') })
      const pause = nodes > 0 ? [await writePauseImage(directory)] : []
      cluster = new Cluster({ directory, network, controlPlane, client, images: [...pause, ...images] })
      for (let number = 1; number <= nodes; number++) await cluster.addNode()
      return cluster
    } catch (error) {
      if (cluster) await cluster.close()
      else {
        await controlPlane?.stop()
        network.close()
        rmSync(directory, { recursive: true, force: true })
      }
      throw error
    }
  }

  /** Adds a node and waits until it is Ready. */
  async addNode(): Promise<ClusterNode> {
    const { directory, network, controlPlane } = this
    const number = this.nodes.length + 1
    const node = await ClusterNode.start({ directory: join(directory, `n${number}`), network, controlPlane, number, images: this.#images })
    this.nodes.push(node)
    await node.program('kubelet').ready(() => this.#isReady(node.name))
    return node
  }

  /** Whether the kubelet of the node has reported it as Ready after that time. */
  async reportsAfter(node: string, timeMs: number): Promise<boolean> {
    const { status } = await this.client.resource(nodeResource).get(node)
    const ready = status?.conditions?.find(({ type }) => type === 'Ready')
    return ready?.status === 'True' && Date.parse(ready.lastHeartbeatTime ?? '') > timeMs
  }

  async close(): Promise<void> {
    await this.client.close()
    const stopped = await Promise.allSettled(this.nodes.map(node => node.stop()))
    await this.controlPlane.stop()
    // The last processes of a network namespace have to be gone.
    await sleep(100)
    this.network.close()
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
    for (const each of stopped) if (each.status === 'rejected') throw each.reason
  }

  async #isReady(name: string): Promise<boolean> {
    const { status } = await this.client.resource(nodeResource).get(name)
    return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  }
}

export async function writePauseImage(directory: string): Promise<string> {
  const root = join(directory, 'pause')
  mkdirSync(root)
  copyFileSync(built('pause'), join(root, 'pause'))
  const output = join(directory, 'pause.tar')
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64'
  const layers = [{ description: 'pause', directory: root }]
  await writeOciArchive({ name: pauseImage, layers, config: { Entrypoint: ['/pause'] }, architecture, createdAtSeconds: 0, output })
  return output
}
