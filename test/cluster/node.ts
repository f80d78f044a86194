import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCgroup, removeCgroup } from './cgroups.ts'
import { type ControlPlane, dnsAddress } from './control-plane.ts'
import { type ClusterNetwork, enter, waitUntil } from './network.ts'
import { built, cniDirectory, Program } from './programs.ts'

/** Files below /proc/sys that the kubelet sets, with what it wants: in a container or a virtual machine it may not. */
const sysctls = { 'vm/overcommit_memory': '1', 'vm/panic_on_oom': '0', 'kernel/panic': '10', 'kernel/panic_on_oops': '1' }
export const pauseImage = 'oarlock.test/pause:1'

/** A node of the cluster: containerd, kubelet, kube-proxy and CoreDNS in a network namespace and a mount namespace of its own. */
export class ClusterNode {
  readonly name: string
  readonly #directory: string
  readonly #socket: string
  readonly #cgroup: string
  /** Keeps the mount namespace, in which the kubelet and containerd see the same mounts. */
  readonly #holder: Program
  readonly #namespaces: string[]
  readonly #programs: { containerd: Program; kubelet: Program; 'kube-proxy': Program; coredns: Program }

  private constructor(options: NodeOptions) {
    const { directory, network, controlPlane, number, labels = {} } = options
    this.name = `n${number}`
    this.#directory = directory
    this.#socket = join(directory, 'containerd.sock')
    this.#cgroup = cgroupOf(options)
    // A kubelet removes the cgroups of Pods that it does not know, with their processes: two nodes cannot share one.
    createCgroup(this.#cgroup)
    const networkNamespace = network.addNode(number)
    for (const [path, value] of Object.entries(sysctls)) writeFileSync(join(directory, path.replace('/', '-')), `${value}\n`)
    const binds = Object.keys(sysctls).map(path => `mount --bind ${join(directory, path.replace('/', '-'))} /proc/sys/${path}`)
    const log = (name: string) => join(directory, `${name}.log`)
    // The network namespaces of Pods have their files here, which end with this mount namespace.
    binds.push('mkdir -p /run/netns', 'mount -t tmpfs netns /run/netns')
    const hold = `${binds.join(' && ')} && touch ${join(directory, 'mounted')} && exec sleep infinity`
    this.#holder = new Program('mount namespace', log('holder'), [
      ...enter(networkNamespace),
      'unshare',
      '-m',
      '--propagation',
      'private',
      'sh',
      '-c',
      hold,
    ])
    // A program that enters before would share the mounts of this machine.
    waitUntil(`the mounts of node ${this.name}`, () => existsSync(join(directory, 'mounted')))
    this.#namespaces = ['nsenter', `--target=${this.#holder.pid}`, '--mount', '--net']
    const files = writeConfiguration(options, this.#socket)
    const kubeconfig = controlPlane.kubeconfig(`system:node:${this.name}`, 'system:nodes')
    network.addAddress(networkNamespace, dnsAddress)
    const run = (name: string, args: string[]) => () => new Program(name, log(name), [...this.#namespaces, ...args])
    const start = {
      containerd: run('containerd', ['containerd', `--config=${files.containerd}`]),
      // The kubelet exits if containerd does not listen yet.
      kubelet: run('kubelet', [
        ...['sh', '-c', 'while [ ! -S "$0" ]; do sleep 0.1; done; exec "$@"', this.#socket],
        built('kubelet'),
        `--config=${files.kubelet}`,
        `--kubeconfig=${kubeconfig}`,
        `--hostname-override=${this.name}`,
        `--node-ip=${network.nodeAddress(number)}`,
        `--root-dir=${join(directory, 'kubelet')}`,
        `--cert-dir=${join(directory, 'kubelet-pki')}`,
        `--node-labels=${Object.entries(labels)
          .map(([key, value]) => `${key}=${value}`)
          .join(',')}`,
      ]),
      'kube-proxy': run('kube-proxy', [built('kube-proxy'), `--config=${files.proxy}`, `--hostname-override=${this.name}`]),
      coredns: run('coredns', [built('coredns'), `-conf=${files.corefile}`]),
    }
    this.#programs = {
      containerd: start.containerd(),
      kubelet: start.kubelet(),
      'kube-proxy': start['kube-proxy'](),
      coredns: start.coredns(),
    }
  }

  static async start(options: NodeOptions): Promise<ClusterNode> {
    mkdirSync(options.directory, { recursive: true })
    const node = new ClusterNode(options)
    try {
      await node.#programs.containerd.ready(async () => node.#ctr('version') !== '', 20_000)
      for (const image of options.images) node.importImage(image)
      return node
    } catch (error) {
      await node.stop()
      throw error
    }
  }

  program(name: 'containerd' | 'kubelet' | 'kube-proxy' | 'coredns'): Program {
    return this.#programs[name]
  }

  /** @param archive an OCI layout as a tar file, whose index names the image. */
  importImage(archive: string): void {
    this.#ctr('images', 'import', '--digests=false', archive)
  }

  /** Runs a program of this machine in the namespaces of the node. */
  execute(program: string, args: readonly string[], input = ''): string {
    const [enter = '', ...rest] = [...this.#namespaces, program, ...args]
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
    return execFileSync(enter, rest, { encoding: 'utf8', input, env })
  }

  /** Host processes of the containers, with their Pods. */
  containers(): { id: string; pid: number }[] {
    const lines = this.#ctr('tasks', 'list').trim().split('\n').slice(1)
    return lines.map(line => line.split(/\s+/)).flatMap(([id = '', pid = '']) => (Number(pid) > 0 ? [{ id, pid: Number(pid) }] : []))
  }

  /** Ends everything, as a power failure would, and removes its cgroups. */
  async stop(): Promise<void> {
    const { containerd, kubelet, coredns } = this.#programs
    await Promise.all([kubelet.kill(), coredns.kill(), this.#programs['kube-proxy'].kill()])
    try {
      // The end of one, such as the first of a shared process namespace, ends others.
      for (const { id } of this.containers()) this.#tryCtr('tasks', 'kill', '--signal=SIGKILL', '--all', id)
      for (let i = 0; i < 50 && this.containers().length > 0; i++) {
        for (const { id } of this.containers()) this.#tryCtr('tasks', 'delete', '--force', id)
      }
      for (const id of this.#ctr('containers', 'list', '--quiet').trim().split('\n').filter(Boolean))
        this.#tryCtr('containers', 'delete', id)
    } catch {
      // containerd did not start.
    }
    await containerd.stop(10_000)
    await this.#holder.kill()
    await removeCgroup(this.#cgroup)
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 })
  }

  #ctr(...args: string[]): string {
    const [program = '', ...rest] = [...this.#namespaces, 'ctr', `--address=${this.#socket}`, '--namespace=k8s.io', ...args]
    return execFileSync(program, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  #tryCtr(...args: string[]): void {
    try {
      this.#ctr(...args)
    } catch {
      // It has ended meanwhile.
    }
  }
}

export type NodeOptions = {
  readonly directory: string
  readonly network: ClusterNetwork
  readonly controlPlane: Pick<ControlPlane, 'kubeconfig'>
  /** With which its kubelet registers it. */
  readonly labels?: Readonly<Record<string, string>>
  /** Replaces fields of its KubeletConfiguration. */
  readonly kubelet?: object
  /** From 1. */
  readonly number: number
  /** OCI archives; one of them is `pauseImage`. */
  readonly images: readonly string[]
}

const cgroupOf = ({ network, number }: NodeOptions) => `oarlock-${network.id}-n${number}`

function writeConfiguration(options: NodeOptions, socket: string) {
  const { directory, network, controlPlane, number, kubelet } = options
  const file = (name: string) => join(directory, name)
  const write = (name: string, content: string | object) => {
    writeFileSync(file(name), typeof content === 'string' ? content : JSON.stringify(content))
    return file(name)
  }
  mkdirSync(file('cni'), { recursive: true })
  write('cni/10-bridge.conflist', {
    cniVersion: '0.4.0',
    name: 'pods',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: file('ipam'),
          ranges: [[{ subnet: network.podSubnet(number) }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'loopback' },
    ],
  })
  write('resolv.conf', 'nameserver 192.0.2.1\n')
  const corefile = `.:53 {
  bind ${dnsAddress}
  errors
  kubernetes cluster.local {
    kubeconfig ${controlPlane.kubeconfig('coredns', 'system:masters')}
  }
  cache 5
}
`
  return {
    corefile: write('Corefile', corefile),
    containerd: write(
      'containerd.toml',
      `version = 2
root = "${file('containerd')}"
state = "${file('containerd-state')}"
[grpc]
  address = "${socket}"
[ttrpc]
  address = "${socket}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "${pauseImage}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniDirectory}"
    conf_dir = "${file('cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "runc"
`,
    ),
    kubelet: write('kubelet.json', {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      address: network.nodeAddress(number),
      authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
      containerRuntimeEndpoint: `unix://${socket}`,
      cgroupDriver: 'cgroupfs',
      cgroupRoot: `/${cgroupOf(options)}`,
      cgroupsPerQOS: true,
      enforceNodeAllocatable: [],
      failCgroupV1: false,
      failSwapOn: false,
      makeIPTablesUtilChains: false,
      localStorageCapacityIsolation: false,
      evictionHard: { 'memory.available': '10Mi' },
      imageGCHighThresholdPercent: 100,
      podLogsDir: file('pod-logs'),
      clusterDNS: [dnsAddress],
      clusterDomain: 'cluster.local',
      resolvConf: file('resolv.conf'),
      nodeStatusUpdateFrequency: '5s',
      syncFrequency: '10s',
      maxPods: 200,
      shutdownGracePeriod: '0s',
      ...kubelet,
    }),
    proxy: write('kube-proxy.json', {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      mode: 'nftables',
      clientConnection: { kubeconfig: controlPlane.kubeconfig('system:kube-proxy') },
      clusterCIDR: '10.244.0.0/16',
      healthzBindAddress: '127.0.0.1:10256',
      metricsBindAddress: '127.0.0.1:10249',
      conntrack: { maxPerCore: 0 },
    }),
  }
}
