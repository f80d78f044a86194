import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { Cluster } from './cluster.ts'
import { buildOarlockImage, imageMissing } from './oarlock-image.ts'
import { clusterMissing } from './programs.ts'

const run = promisify(execFile)
const chart = join(import.meta.dirname, '..', '..', 'charts/oarlock')
const clients = process.env.OARLOCK_CLIENTS_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'clients')
const helmProgram = join(clients, 'helm')
/** On two slow cores, where other tests run at the same time. */
const waitTimeout = '400s'

/** The reason why the chart cannot be installed in a cluster on this machine; undefined if it can. */
export function installedChartMissing(): string | undefined {
  const helmMissing = existsSync(helmProgram) ? undefined : 'helm not found: run scripts/build-clients.sh (needs Go)'
  return clusterMissing() ?? imageMissing() ?? helmMissing
}

const volume = (name: string, claim: string, path: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '10Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Retain',
    storageClassName: '',
    hostPath: { path },
    claimRef: { namespace: 'oarlock-system', name: claim },
  },
})
const namespace = (name: string, labels: object = {}) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })

/** A cluster of one node with the chart, and a namespace `shop` for Stacks. */
export class InstalledChart {
  readonly cluster: Cluster
  readonly #directory: string

  private constructor(cluster: Cluster, directory: string) {
    this.cluster = cluster
    this.#directory = directory
  }

  /**
   * @param values in addition to those that a cluster without registry and storage classes needs.
   * @param images further OCI archives that the node gets.
   */
  static async start(values: object, images: readonly string[] = []): Promise<InstalledChart> {
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-installed-'))
    const installed = new InstalledChart(await Cluster.start({ nodes: 1, images: [buildOarlockImage(), ...images] }), directory)
    try {
      await installed.#install(values)
      return installed
    } catch (error) {
      const state = await installed.kubectl('get', 'pods,apiservices,events', '-A', '-o', 'wide').catch(String)
      await installed.close()
      throw new Error(`${(error as { stderr?: string }).stderr ?? ''}\n${state}`, { cause: error })
    }
  }

  async kubectl(...args: string[]): Promise<string> {
    return (await run('kubectl', args, { env: this.#env, maxBuffer: 2 ** 26 })).stdout
  }

  async apply(...objects: readonly object[]): Promise<void> {
    // Server-side: some CRDs are larger than the annotation of the other way may be.
    const child = run('kubectl', ['apply', '--server-side', '-f', '-'], { env: this.#env, maxBuffer: 2 ** 26 })
    child.child.stdin?.end(objects.map(object => `---\n${stringify(object)}`).join(''))
    await child
  }

  /** Sends an object to a path that is no resource of its own, such as the subresource `eviction` of a Pod. */
  async createRaw(path: string, body: string): Promise<void> {
    const child = run('kubectl', ['create', `--raw=${path}`, '-f', '-'], { env: this.#env })
    child.child.stdin?.end(body)
    await child
  }

  async close(): Promise<void> {
    await this.cluster.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  get #env(): NodeJS.ProcessEnv {
    return { ...process.env, KUBECONFIG: this.cluster.kubeconfig }
  }

  async #install(values: object): Promise<void> {
    const file = join(this.#directory, 'values.yaml')
    const own = {
      image: { pullPolicy: 'Never' },
      stores: { volume: { storageClass: '' } },
      joinService: { volume: { storageClass: '' } },
      workerNamespaces: ['shop'],
    }
    writeFileSync(file, stringify({ ...own, ...values }))
    const volumes = { stores: 'data-oarlock-stores-0', join: 'oarlock-join-service' }
    await this.apply(namespace('oarlock-system', { 'pod-security.kubernetes.io/enforce': 'restricted' }), namespace('shop'))
    for (const [name, claim] of Object.entries(volumes)) {
      const path = join(this.#directory, name)
      mkdirSync(path)
      chownSync(path, 65_532, 65_532)
      await this.apply(volume(name, claim, path))
    }
    const args = ['install', 'oarlock', chart, `--values=${file}`, '--wait', `--timeout=${waitTimeout}`, '--namespace=oarlock-system']
    await run(helmProgram, args, { env: this.#env })
  }
}
