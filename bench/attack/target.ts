/** A running `oarlock up` with something worth stealing, and what an attacker on it can use. */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { annotations, type Run, type StackSpec, systemNamespace, workerPoolResource, workerResource } from '../../src/api/index.ts'
import { privateNetworkProblem, probeIsolation } from '../../src/execution/workspace/index.ts'
import { type Client, createClient, namespaceResource, secretResource, serviceAccountResource } from '../../src/kubernetes/client/index.ts'
import { isReason } from '../../src/kubernetes/object/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from '../../test/support/oarlock-process.ts'
import { condition, isReady, isUpToDate, StackFixture } from '../../test/support/stacks.ts'
import { NotRunHere } from './attack.ts'
import { readEnvironments } from './read-environments.ts'
import { type Response, type SendOptions, sendRequest } from './send-request.ts'

/** Of the attacker, and of those whom the attacker must not reach. */
export const attackerNamespace = 'attacker'
export const victimNamespace = 'victim'

const victimSecret = 'password-of-the-victim-7d1f'
const victimState = 'state-of-the-victim-93ab'
const victimOutput = 'output-of-the-victim-c402'
const victimLine = 'log-of-the-victim-60be'

const shellStack = (script: string): Pick<StackSpec, 'engine' | 'source' | 'command'> => ({
  engine: 'command',
  source: { inline: { files: { 'attack.sh': script } } },
  command: { apply: ['sh', 'attack.sh'] },
})

export type WorkerCredential = { token: string; worker: string }

export type Result = {
  name: string
  run: Run | undefined
  /** Everything that the author of the Stack can read afterwards: log, Run, Stack, outputs and state. */
  text: string
  log: string
}

export class Target {
  readonly #oarlock: OarlockProcess
  readonly #clients: Client[] = []
  #count = 0
  #sandboxProblem = ''
  #editorToken: Promise<string> | undefined
  #stolen: Promise<WorkerCredential | undefined> | undefined
  #victimWorker: Promise<WorkerCredential | undefined> | undefined
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 })
  readonly directory: string
  /** A directory that Stacks may read through source.path and file:// repositories. */
  readonly allowedDirectory: string
  /** What only operators may see: name and text. */
  readonly #secrets = new Map<string, string>()
  /** Of the attacker's Stacks. */
  isolation: NonNullable<StackSpec['isolation']> = { level: 'Sandbox' }
  authorToken = ''
  outsiderToken = ''
  author!: StackFixture
  certificate = ''

  private constructor(oarlock: OarlockProcess, directory: string, allowedDirectory: string) {
    this.#oarlock = oarlock
    this.directory = directory
    this.allowedDirectory = allowedDirectory
  }

  static async start(): Promise<Target> {
    const directory = makeDataDir()
    const allowedDirectory = join(directory, 'repositories')
    mkdirSync(allowedDirectory)
    const oarlock = await startOarlock(join(directory, 'data'), ['--allow-path', allowedDirectory], {
      CLOUD_PASSWORD: 'of-the-operator-51c7',
    })
    const target = new Target(oarlock, directory, allowedDirectory)
    try {
      await target.#prepare()
      return target
    } catch (error) {
      await target.close()
      throw error
    }
  }

  get dataDir(): string {
    return this.#oarlock.dataDir
  }
  get admin(): Client {
    return this.#oarlock.client
  }
  get url(): string {
    return this.#oarlock.client.server
  }
  /** Of health, metrics, queue and console. */
  get httpUrl(): string {
    return this.#oarlock.httpUrl
  }
  get pid(): number {
    return this.#oarlock.child.pid as number
  }
  get kubeconfig(): string {
    return this.#oarlock.kubeconfig
  }
  get isRunning(): boolean {
    return this.#oarlock.child.exitCode === null && this.#oarlock.child.signalCode === null
  }
  output(): string {
    return this.#oarlock.output()
  }

  async close(): Promise<void> {
    this.#agent.destroy()
    // oarlock up would wait for its end.
    if (this.isRunning)
      await this.victimRun()
        .then(run => this.victim.runs.patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: victimNamespace }))
        .catch(() => {})
    await Promise.all(this.#clients.map(client => client.close()))
    await this.#oarlock.stop()
    removeDirectory(this.directory)
  }

  /** A path outside of every Run, at which nothing exists yet. */
  newPath(): string {
    return join(this.directory, `path-${randomUUID()}`)
  }

  newName(prefix = 'attack'): string {
    return `${prefix}-${++this.#count}`
  }

  /** A file of the worker's user that no Run may read or write. */
  createVictimFile(text = `file-of-the-worker-${randomUUID()}`): { path: string; text: string; isUnchanged(): boolean } {
    const path = this.newPath()
    writeFileSync(path, text, { mode: 0o600 })
    return { path, text, isUnchanged: () => existsSync(path) && readFileSync(path, 'utf8') === text }
  }

  /** Names of the secrets that are in the text, also as hexadecimal digits or in base64. */
  secretsIn(text: string): string[] {
    const digits = text.replace(/[^0-9a-f]/g, '')
    const has = (secret: string) =>
      text.includes(secret) || digits.includes(Buffer.from(secret).toString('hex')) || text.includes(Buffer.from(secret).toString('base64'))
    return [...this.#secrets].filter(([, secret]) => has(secret)).map(([name]) => name)
  }

  /** Runs a shell script as the attacker's Stack, by default in a sandbox if there is one, and waits until its Run has ended. */
  async runScript(script: string, spec: Partial<StackSpec> = {}): Promise<Result> {
    return await this.runStack({ ...shellStack(script), ...spec })
  }

  async runStack(spec: Partial<StackSpec> & Pick<StackSpec, 'engine' | 'source'>): Promise<Result> {
    const name = this.newName()
    await this.author.create(name, {
      pool: 'attack',
      retry: { limit: 0 },
      timeout: '60s',
      ...spec,
      isolation: { ...this.isolation, ...spec.isolation },
    })
    const run = await this.untilSettled(name)
    const result = await this.readResult(name, run)
    await this.author.patch(name, { spec: { suspend: true } })
    return result
  }

  /** False if the schema rejects it. */
  async createIfValid(name: string, spec: StackSpec): Promise<boolean> {
    try {
      await this.author.create(name, spec)
      return true
    } catch (error) {
      if (isReason(error, 'Invalid')) return false
      throw error
    }
  }

  /** Resolves when the newest Run of the Stack has ended or is refused, or none can start. */
  async untilSettled(name: string): Promise<Run | undefined> {
    return await eventually(
      async () => {
        const runs = await this.author.runsOf(name)
        const run = runs.at(-1)
        if (run) return run.status?.finishedAt || run.status?.reason === 'PolicyViolation' ? { run } : undefined
        const stack = await this.author.get(name)
        if (!isUpToDate(stack) || condition(stack, 'Ready')?.status !== 'False') return undefined
        const isMissing = /^(Input|Dependency)NotFound$/.test(condition(stack, 'Reconciling')?.reason ?? '')
        return isMissing || (!condition(stack, 'Reconciling') && condition(stack, 'Stalled')) ? { run: undefined } : undefined
      },
      `the Run of ${name} to end`,
      // The worker or its supervisor ends every program at most 123 s after the timeout of its Run.
      300_000,
    ).then(({ run }) => run)
  }

  async readResult(name: string, run: Run | undefined): Promise<Result> {
    const get = (path: string) => this.send('GET', path, { token: this.authorToken })
    const stack = await this.author.get(name)
    const log = run ? await get(`/logs/${attackerNamespace}/${run.metadata.name}`) : undefined
    const [outputs, state] = await Promise.all([
      get(`/api/v1/namespaces/${attackerNamespace}/secrets/${name}-outputs`),
      get(`/state/${attackerNamespace}/${name}`),
    ])
    const stored = (JSON.parse(outputs.text) as { data?: Record<string, string> }).data ?? {}
    const decoded = Object.values(stored).map(value => Buffer.from(value, 'base64').toString())
    return {
      name,
      run,
      log: log?.text ?? '',
      text: [log?.text, JSON.stringify(run), JSON.stringify(stack), outputs.text, ...decoded, state.text].join('\n'),
    }
  }

  /** Sends a request as it is, without normalizing its path, to the API server. */
  async send(method: string, path: string, options: SendOptions = {}): Promise<Response> {
    return await sendRequest(this.url, method, path, { ca: this.certificate, agent: this.#agent, ...options })
  }

  async sendToHealthAddress(method: string, path: string, options: SendOptions = {}): Promise<Response> {
    return await sendRequest(this.httpUrl, method, path, options)
  }

  get operatorToken(): string {
    return readFileSync(join(this.dataDir, 'pki', 'admin-token'), 'utf8').trim()
  }

  /** Of an account that may write Stacks of the attacker's namespace, and no more. */
  async editorToken(): Promise<string> {
    this.#editorToken ??= this.#createAccount('editor', 'edit')
    return await this.#editorToken
  }

  /** What an engine at level Process reads in the environments of the processes of its user; undefined if there is no credential. */
  async stealWorkerToken(): Promise<WorkerCredential | undefined> {
    this.#stolen ??= this.#stealWorkerToken('attack')
    return await this.#stolen
  }

  /** Of a worker that executes one Run. */
  async stealOneShotToken(): Promise<WorkerCredential | undefined> {
    return await this.#stealWorkerToken('default')
  }

  async #stealWorkerToken(pool: string): Promise<WorkerCredential | undefined> {
    const path = this.newPath()
    const read = `for e in /proc/*/environ; do tr '\\0' '\\n' < $e 2>/dev/null | grep -E '^OARLOCK_TOKEN='; done`
    const script = `${read} > ${path}.new; mv ${path}.new ${path}; while [ ! -e ${path}.end ]; do sleep 0.05; done`
    const ended = this.runScript(script, { isolation: { level: 'Process' }, pool })
    // A one-shot worker is there only while its Run is.
    const isRead = await Promise.race([eventually(() => existsSync(path), 'the environments to be read', 60_000), ended.then(() => false)])
    const found = isRead ? await this.#findWorker(readFileSync(path, 'utf8'), pool) : undefined
    writeFileSync(`${path}.end`, '')
    await ended
    return found
  }

  async #findWorker(environments: string, pool: string): Promise<WorkerCredential | undefined> {
    const tokens = new Set([...environments.matchAll(/^OARLOCK_TOKEN=(.+)$/gm)].map(([, token]) => token as string))
    const { items } = await this.admin.resource(workerResource).listAll()
    for (const token of tokens)
      for (const { metadata, spec } of items) {
        if (spec.pool !== pool) continue
        // A worker reads its own Worker only.
        const { status } = await this.send('GET', `/apis/oarlock.dev/v1alpha1/workers/${metadata.name}`, { token })
        if (status === 200) return { token, worker: metadata.name }
      }
    return undefined
  }

  async untilWorkerDeleted(name: string): Promise<void> {
    const workers = this.admin.resource(workerResource)
    await eventually(async () => (await workers.getOrUndefined(name)) === undefined, `the worker ${name} to end`, 60_000)
  }

  async clientOf(token: string): Promise<Client> {
    const client = await createClient({ cluster: { server: this.url, caCertificate: this.certificate, token } })
    this.#clients.push(client)
    return client
  }

  async createSecret(name: string, stringData: Record<string, string>): Promise<void> {
    await this.author.client.resource(secretResource).create({ metadata: { name, namespace: attackerNamespace }, stringData })
  }

  /** @throws {NotRunHere} if sandboxes are not available. */
  requireSandbox(): void {
    if (this.isolation.level !== 'Sandbox') throw new NotRunHere(this.#sandboxProblem)
  }

  /** @throws {NotRunHere} if sandboxes have no network here. */
  requirePrivateNetwork(): void {
    if (this.isolation.level !== 'Sandbox' || this.isolation.network === 'None') throw new NotRunHere(this.#sandboxProblem)
  }

  /** A sandbox with a network if possible, or without one. Attacks that are not about sandboxes run at level Process too. */
  async #probe(): Promise<void> {
    const probe = await probeIsolation('Sandbox')
    const problem = probe.available ? privateNetworkProblem(probe.sandbox?.slirp4netns) : probe.reason
    this.#sandboxProblem = problem ?? ''
    if (!probe.available) this.isolation = { level: 'Process' }
    else if (problem) this.isolation = { level: 'Sandbox', network: 'None' }
  }

  async #prepare(): Promise<void> {
    const { admin } = this
    await this.#probe()
    this.certificate = await (await admin.request({ method: 'GET', path: '/join/ca' })).text()
    const namespaces = admin.resource(namespaceResource)
    // Otherwise the victim's namespace, which has Stacks with resources, could be deleted by no user.
    const allowDelete = { [annotations.forceDelete]: 'true' }
    await Promise.all([attackerNamespace, victimNamespace].map(name => namespaces.create({ metadata: { name, annotations: allowDelete } })))
    const pools = admin.resource(workerPoolResource)
    await pools.create({ metadata: { name: 'attack' }, spec: { mode: 'Process', lifecycle: 'Warm', slots: 4, min: 1, max: 1 } })
    await pools.create({ metadata: { name: 'victim' }, spec: { mode: 'Process', lifecycle: 'Warm', slots: 1, min: 1, max: 1 } })
    await pools.create({ metadata: { name: 'edge' }, spec: { mode: 'External', lifecycle: 'Warm' } })
    this.authorToken = await this.#createAccount('author', 'admin')
    this.outsiderToken = await this.#createAccount('outsider', undefined)
    this.author = new StackFixture(await this.clientOf(this.authorToken), attackerNamespace)
    await this.#createVictim()
    const read = (...path: string[]) => readFileSync(join(this.dataDir, ...path), 'utf8').trim()
    this.#secrets.set('the admin token', read('pki', 'admin-token'))
    this.#secrets.set('the key of service accounts', read('pki', 'service-account.key').split('\n')[1] ?? '')
    this.#secrets.set('a Secret of another namespace', victimSecret)
    this.#secrets.set('the state of another namespace', victimState)
    this.#secrets.set('outputs of another namespace', victimOutput)
    this.#secrets.set('a log of another namespace', victimLine)
    this.#secrets.set("the operator's environment", 'of-the-operator-51c7')
  }

  /** A ServiceAccount of the attacker's namespace, with a ClusterRole in that namespace. Returns its token. */
  async #createAccount(name: string, clusterRole: string | undefined): Promise<string> {
    const { admin } = this
    await admin.resource(serviceAccountResource).create({ metadata: { name, namespace: attackerNamespace } })
    if (clusterRole) {
      const roleBindings = await admin.discover('rbac.authorization.k8s.io/v1', 'RoleBinding')
      await admin.resource(roleBindings).create({
        metadata: { name: `${name}-${clusterRole}`, namespace: attackerNamespace },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: clusterRole },
        subjects: [{ kind: 'ServiceAccount', name, namespace: attackerNamespace }],
      })
    }
    const path = `/api/v1/namespaces/${attackerNamespace}/serviceaccounts/${name}/token`
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const response = await admin.request({ method: 'POST', path, body })
    return ((await response.json()) as { status: { token: string } }).status.token
  }

  /** A Stack with a Secret, outputs and a state, and one whose Run does not end. */
  async #createVictim(): Promise<void> {
    const victim = this.victim
    await this.admin
      .resource(secretResource)
      .create({ metadata: { name: 'login', namespace: victimNamespace }, stringData: { password: victimSecret } })
    const apply = `echo ${victimLine}; echo '{"value":{"value":"${victimOutput}","sensitive":true}}' > $OARLOCK_OUTPUTS; echo '{"text":"${victimState}"}' > $OARLOCK_STATE`
    await victim.create('web', { ...shellStack(apply), pool: 'victim' })
    await victim.until('web', 'Ready', isReady, 90_000)
    // For requests that change a state: nothing reads this one.
    await victim.create('spare', { ...shellStack('true'), pool: 'victim', suspend: true })
    await victim.create('long', {
      ...shellStack('trap "exit 0" INT; while :; do sleep 0.2; done'),
      pool: 'victim',
      timeout: '1h',
      variablesFrom: [{ secretRef: { name: 'login' } }],
    })
    await victim.untilRun('long', 'the start', run => run.status?.phase === 'Applying', 90_000)
  }

  get victim(): StackFixture {
    return new StackFixture(this.admin, victimNamespace)
  }

  /** The Run of a Stack of the victim as it is now; that of `long` does not end, that of `web` has ended. */
  async victimRun(stack: 'long' | 'web' = 'long'): Promise<Run> {
    const [run] = await this.victim.runsOf(stack)
    if (!run) throw new Error('the Run of the victim was deleted')
    return run
  }

  /** Of the worker that executes the Run that does not end. */
  async victimWorkerToken(): Promise<string> {
    this.#victimWorker ??= this.#findWorker(readEnvironments(), 'victim')
    const credential = await this.#victimWorker
    if (!credential) throw new Error('the worker of the victim has no token in its environment')
    return credential.token
  }

  /** The namespaces in which attacks look for what they may not change. */
  readonly systemNamespaces = [systemNamespace, 'oarlock-workers', 'kube-system'] as const
}
