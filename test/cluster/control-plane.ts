import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { CertificateAuthority } from './certificates.ts'
import { type ClusterNetwork, enter } from './network.ts'
import { built, Program } from './programs.ts'

const serviceSubnet = '10.96.0.0/16'
export const dnsAddress = '10.96.0.10'

export type Audit = 'All' | 'Writes'
type ControlPlaneOptions = { readonly monitorGraceSeconds: number; readonly audit?: Audit | undefined }

/** etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with the certificates that they and the nodes use. */
export class ControlPlane {
  readonly url: string
  readonly #directory: string
  readonly #authority: CertificateAuthority
  readonly #programs = new Map<string, Program>()

  private constructor(directory: string, network: ClusterNetwork) {
    this.#directory = directory
    this.url = `https://${network.controlPlaneAddress}:6443`
    this.#authority = new CertificateAuthority(directory, 'ca')
  }

  /** @param options.monitorGraceSeconds how long a node may not report before it is NotReady. */
  static async start(directory: string, network: ClusterNetwork, options: ControlPlaneOptions): Promise<ControlPlane> {
    mkdirSync(directory, { recursive: true })
    const it = new ControlPlane(directory, network)
    try {
      await it.#start(network, options)
    } catch (error) {
      await it.stop()
      throw error
    }
    return it
  }

  program(name: 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'): Program {
    const program = this.#programs.get(name)
    if (!program) throw new Error(`${name} was not started`)
    return program
  }

  /** @param user such as `system:node:n1`. @returns the path of a kubeconfig. */
  kubeconfig(user: string, group?: string): string {
    const name = user.replaceAll(':', '-')
    const { certFile, keyFile } = this.#authority.issue(name, `${group === undefined ? '' : `/O=${group}`}/CN=${user}`)
    const path = join(this.#directory, `${name}.kubeconfig`)
    const base64 = (file: string) => readFileSync(file).toString('base64')
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server: this.url, 'certificate-authority-data': base64(this.#authority.certFile) } }],
      users: [{ name: user, user: { 'client-certificate-data': base64(certFile), 'client-key-data': base64(keyFile) } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user } }],
      'current-context': 'c',
    }
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 })
    return path
  }

  async stop(): Promise<void> {
    for (const program of [...this.#programs.values()].reverse()) await program.stop(2_000)
  }

  /** One JSON object in each line, of each request that has ended; see `ClusterOptions.audit`. */
  get auditLog(): string {
    return join(this.#directory, 'audit.log')
  }

  async #start(network: ClusterNetwork, { monitorGraceSeconds, audit }: ControlPlaneOptions): Promise<void> {
    const [directory, authority] = [this.#directory, this.#authority]
    const file = (name: string) => join(directory, name)
    this.#run('etcd', network, [
      `--data-dir=${file('etcd')}`,
      '--listen-client-urls=http://127.0.0.1:2379',
      '--advertise-client-urls=http://127.0.0.1:2379',
      '--listen-peer-urls=http://127.0.0.1:2380',
      '--unsafe-no-fsync',
      '--log-level=warn',
    ])
    const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'localhost']
    const addresses = ['127.0.0.1', '10.96.0.1', network.controlPlaneAddress]
    const subjects = [...names.map(name => `DNS:${name}`), ...addresses.map(address => `IP:${address}`)].join(',')
    const serving = authority.issue('kube-apiserver', '/CN=kube-apiserver', subjects)
    const accounts = authority.issue('service-accounts', '/CN=service-accounts')
    const requestHeader = new CertificateAuthority(directory, 'front-proxy-ca')
    const proxy = requestHeader.issue('front-proxy', '/CN=front-proxy-client')
    const server = this.#run('kube-apiserver', network, [
      '--etcd-servers=http://127.0.0.1:2379',
      `--advertise-address=${network.controlPlaneAddress}`,
      '--secure-port=6443',
      `--tls-cert-file=${serving.certFile}`,
      `--tls-private-key-file=${serving.keyFile}`,
      `--client-ca-file=${authority.certFile}`,
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      `--service-cluster-ip-range=${serviceSubnet}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${accounts.certFile}`,
      `--service-account-signing-key-file=${accounts.keyFile}`,
      `--requestheader-client-ca-file=${requestHeader.certFile}`,
      '--requestheader-allowed-names=front-proxy-client',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-username-headers=X-Remote-User',
      `--proxy-client-cert-file=${proxy.certFile}`,
      `--proxy-client-key-file=${proxy.keyFile}`,
      // kube-proxy runs on nodes only, so kube-apiserver connects to the addresses of Pods.
      '--enable-aggregator-routing=true',
      '--kubelet-preferred-address-types=InternalIP',
      '--profiling=false',
      ...(audit
        ? [`--audit-policy-file=${this.#auditPolicy(audit)}`, `--audit-log-path=${this.auditLog}`, '--audit-log-maxsize=10000']
        : []),
    ])
    const admin = this.kubeconfig('admin', 'system:masters')
    await server.ready(() => isReady(admin))
    const common = [`--kubeconfig=${this.kubeconfig('system:kube-controller-manager')}`, '--leader-elect=false']
    this.#run('kube-controller-manager', network, [
      ...common,
      '--use-service-account-credentials=true',
      `--service-account-private-key-file=${accounts.keyFile}`,
      `--root-ca-file=${authority.certFile}`,
      `--node-monitor-grace-period=${monitorGraceSeconds}s`,
      '--node-monitor-period=2s',
      '--horizontal-pod-autoscaler-sync-period=5s',
      '--horizontal-pod-autoscaler-downscale-stabilization=10s',
    ])
    this.#run('kube-scheduler', network, [`--kubeconfig=${this.kubeconfig('system:kube-scheduler')}`, '--leader-elect=false'])
  }

  #auditPolicy(audit: Audit): string {
    const verbs = audit === 'Writes' ? { verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'] } : {}
    const path = join(this.#directory, 'audit-policy.json')
    const rules = [{ level: 'Metadata', ...verbs }, { level: 'None' }]
    writeFileSync(
      path,
      JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived', 'ResponseStarted'], rules }),
    )
    return path
  }

  #run(name: string, network: ClusterNetwork, args: readonly string[]): Program {
    const program = new Program(name, join(this.#directory, `${name}.log`), [...enter(network.controlPlane), built(name), ...args])
    this.#programs.set(name, program)
    return program
  }
}

async function isReady(kubeconfig: string): Promise<boolean> {
  const client = await createClient({ kubeconfig })
  try {
    return (await client.resource(namespaceResource).get('default')).metadata.name === 'default'
  } finally {
    await client.close()
  }
}
