import { execFile } from 'node:child_process'
import { chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import type { Cluster } from './cluster.ts'

const run = promisify(execFile)
const clients = process.env.OARLOCK_CLIENTS_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'clients')
const helmProgram = join(clients, 'helm')
export const helmMissing = (): string | undefined =>
  existsSync(helmProgram) ? undefined : 'helm not found: run scripts/build-clients.sh (needs Go)'

/** Of the user of the image. */
const userId = 65_532
/** On slow cores, where other tests run at the same time. */
export const waitTimeout = '300s'
const system = 'oarlock-system'

/** The chart in a cluster, with its volumes in a temporary directory of this machine, which all nodes see. */
export class Installation {
  readonly directory: string
  readonly #env: NodeJS.ProcessEnv

  constructor(cluster: Cluster) {
    this.directory = mkdtempSync(join(tmpdir(), 'oarlock-volumes-'))
    this.#env = { ...process.env, KUBECONFIG: cluster.kubeconfig }
    for (const name of ['stores', 'join', 'ledgers']) {
      mkdirSync(join(this.directory, name))
      chownSync(join(this.directory, name), userId, userId)
    }
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }

  async kubectl(...args: string[]): Promise<string> {
    return (await run('kubectl', args, { env: this.#env, maxBuffer: 2 ** 26 })).stdout
  }

  async apply(objects: readonly object[]): Promise<void> {
    const applying = run('kubectl', ['apply', '-f', '-'], { env: this.#env })
    applying.child.stdin?.end(objects.map(object => `---\n${stringify(object)}`).join(''))
    await applying
  }

  /** Runs Helm for the release. @throws {Error} with all Pods. */
  async helm(...args: string[]): Promise<string> {
    try {
      return (await run(helmProgram, [...args, `--namespace=${system}`], { env: this.#env })).stdout
    } catch (error) {
      const pods = await this.kubectl('get', 'pods', '-A', '-o', 'wide')
      throw new Error(`helm ${args.join(' ')}: ${(error as { stderr?: string }).stderr}\n${pods}`, { cause: error })
    }
  }

  /** The namespace of the release, that of Stacks, and the volumes of stores and join service. */
  async prepare(options: { labels?: Record<string, string> } = {}): Promise<void> {
    await this.apply([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: system, labels: options.labels ?? {} } },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      this.#volume('stores', 'data-oarlock-stores-0'),
      this.#volume('join', 'oarlock-join-service'),
    ])
  }

  /** @returns the path of a file with the values. */
  valuesFile(name: string, values: object): string {
    const path = join(this.directory, `${name}.yaml`)
    writeFileSync(path, stringify(values))
    return path
  }

  /** Holders of the locks of states, as the stores have committed them: only the stores can open their database, so this reads a copy. */
  locks(): string[] {
    const files = join(this.directory, 'stores', 'stores', 'state')
    const copy = mkdtempSync(join(tmpdir(), 'oarlock-state-'))
    try {
      for (const name of ['state.db', 'state.db-wal']) if (existsSync(join(files, name))) copyFileSync(join(files, name), join(copy, name))
      const database = new DatabaseSync(join(copy, 'state.db'))
      const rows = database.prepare('SELECT holder FROM lock').all()
      database.close()
      return rows.map(({ holder }) => String(holder))
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }

  #volume(name: string, claim: string): object {
    return {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: '',
        hostPath: { path: join(this.directory, name) },
        claimRef: { namespace: system, name: claim },
      },
    }
  }
}
