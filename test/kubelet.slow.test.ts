import { equal, match, ok } from 'node:assert/strict'
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { writePauseImage } from './cluster/cluster.ts'
import { ClusterNetwork } from './cluster/network.ts'
import { ClusterNode } from './cluster/node.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from './cluster/oarlock-image.ts'
import { clusterMissing, Program } from './cluster/programs.ts'

const skip = clusterMissing() ?? imageMissing() ?? false
const root = join(import.meta.dirname, '..')
const cli = join(root, 'bin', 'oarlock.js')

/** A server of `oarlock serve` that a real kubelet with containerd has joined by the files of `oarlock node-config`. */
class Joined {
  readonly directory = mkdtempSync(join(tmpdir(), 'oarlock-kubelet-'))
  readonly network = new ClusterNetwork(randomBytes(2).toString('hex'))
  readonly data = join(this.directory, 'data')
  readonly admin = join(this.data, 'kubeconfig')
  readonly nodeFiles = join(this.directory, 'n1-files')
  server: Program | undefined
  node: ClusterNode | undefined

  async start(): Promise<void> {
    const listen = `${this.network.hostAddress}:0`
    this.server = new Program('oarlock serve', join(this.directory, 'serve.log'), [
      process.execPath,
      cli,
      'serve',
      '--data',
      this.data,
      '--listen',
      listen,
    ])
    await this.server.ready(async () => (await this.kubectl('get', '--raw', '/readyz')) === 'ok')
    const address = this.network.nodeAddress(1)
    const issued = spawnSync(
      process.execPath,
      [cli, 'node-config', 'n1', '--data', this.data, '--address', address, '--to', this.nodeFiles],
      { encoding: 'utf8' },
    )
    equal(issued.status, 0, issued.stderr)
    const file = (name: string) => join(this.nodeFiles, name)
    this.node = await ClusterNode.start({
      directory: join(this.directory, 'n1'),
      network: this.network,
      // kube-proxy and CoreDNS have no rights of their own on this server.
      controlPlane: { kubeconfig: user => (user === 'system:node:n1' ? file('kubeconfig') : this.admin) },
      number: 1,
      images: [await writePauseImage(this.directory), buildOarlockImage()],
      kubelet: {
        authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: file('client-ca.crt') } },
        authorization: { mode: 'Webhook' },
        tlsCertFile: file('kubelet.crt'),
        tlsPrivateKeyFile: file('kubelet.key'),
      },
    })
    await this.node.program('kubelet').ready(async () => match(await this.kubectl('get', 'node', 'n1'), / Ready /) === undefined)
  }

  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('kubectl', [`--kubeconfig=${this.admin}`, ...args], { encoding: 'utf8', timeout: 120_000 })
    return stdout
  }

  /** @returns its output, the error too, and its exit code. */
  async run(...args: string[]): Promise<{ code: number; text: string }> {
    const child = this.spawn(...args)
    let text = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', chunk => (text += chunk))
    const [code] = (await once(child, 'close')) as [number]
    return { code, text }
  }

  spawn(...args: string[]): ChildProcess {
    return spawn('kubectl', [`--kubeconfig=${this.admin}`, ...args], { stdio: 'pipe', timeout: 120_000 })
  }

  async apply(object: object): Promise<void> {
    const child = this.spawn('apply', '-f', '-')
    let error = ''
    child.stderr?.on('data', chunk => (error += chunk))
    child.stdin?.end(JSON.stringify(object))
    const [code] = await once(child, 'close')
    equal(code, 0, error)
  }

  async close(): Promise<void> {
    await this.node?.stop()
    await this.server?.stop()
    // The last processes of a network namespace have to be gone.
    await sleep(100)
    this.network.close()
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

const pod = (name: string, script: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    nodeName: 'n1',
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 20,
    containers: [{ name: 'main', image: oarlockImage, imagePullPolicy: 'Never', command: ['node', '-e', script], stdin: true }],
    ...more,
  },
})

/** Prints a line and then one each second; echoes its input; serves a port; ends in order on SIGTERM. */
const service = `
  console.log('first line')
  let count = 0
  setInterval(() => console.log('tick ' + ++count), 1000)
  process.stdin.on('data', chunk => console.log('got ' + String(chunk).trim()))
  require('net').createServer(socket => socket.on('data', data => socket.end('pong ' + data))).listen(8080, '127.0.0.1')
  process.on('SIGTERM', () => { console.log('ended in order'); process.exit(0) })
`

describe('a real kubelet joins the embedded server', { skip, timeout: 900_000 }, () => {
  let joined: Joined
  before(async () => {
    joined = new Joined()
    await joined.start()
  })
  after(() => joined.close())
  const wait = (name: string, path: string, value: string) =>
    joined.kubectl('wait', `--for=jsonpath=${path}=${value}`, '--timeout=90s', `pod/${name}`)

  test('a Pod runs to completion with its exit code, and its log can be read', async () => {
    await joined.apply(pod('once', `console.log('hello from ' + process.env.WHO); process.exit(3)`))
    await wait('once', '{.status.containerStatuses[0].state.terminated.exitCode}', '3')
    equal(await joined.kubectl('logs', 'once'), 'hello from undefined\n')
    equal((await joined.run('logs', 'once', '--tail=0')).text, '')
    match((await joined.run('logs', 'once', '-c', 'none')).text, /container none is not valid for pod once/)
    match((await joined.run('logs', 'once', '--previous')).text, /previous terminated container "main" in pod "once" not found/)
  })

  test('a Pod gets its ConfigMap, its Secret and a token that is bound to it', async () => {
    await joined.kubectl('create', 'configmap', 'settings', '--from-literal=color=blue')
    await joined.kubectl('create', 'secret', 'generic', 'password', '--from-literal=value=s3cret')
    const token = { serviceAccountToken: { path: 'token', audience: 'https://kubernetes.default.svc', expirationSeconds: 600 } }
    await joined.apply(
      pod('inputs', '', {
        serviceAccountName: 'default',
        volumes: [{ name: 'token', projected: { sources: [token] } }],
        containers: [
          {
            ...{ name: 'main', image: oarlockImage, imagePullPolicy: 'Never' },
            command: [
              'node',
              '-e',
              `console.log(process.env.COLOR, process.env.VALUE.length, require('fs').readFileSync('/token/token', 'utf8'))`,
            ],
            env: [
              { name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } },
              { name: 'VALUE', valueFrom: { secretKeyRef: { name: 'password', key: 'value' } } },
            ],
            volumeMounts: [{ name: 'token', mountPath: '/token' }],
          },
        ],
      }),
    )
    await wait('inputs', '{.status.phase}', 'Succeeded')
    const [color, length, jwt = ''] = (await joined.kubectl('logs', 'inputs')).trim().split(' ')
    equal(`${color} ${length}`, 'blue 6')
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: jwt } }
    const child = joined.spawn('create', '-f', '-', '-o', 'json')
    let text = ''
    child.stdout?.on('data', chunk => (text += chunk))
    child.stdin?.end(JSON.stringify(review))
    await once(child, 'close')
    const { status } = JSON.parse(text)
    equal(status.user.extra['authentication.kubernetes.io/pod-name'][0], 'inputs')
    equal(status.user.extra['authentication.kubernetes.io/node-name'][0], 'n1')
    ok(status.user.extra['authentication.kubernetes.io/pod-uid'][0])
  })

  test('logs -f, exec, attach and port-forward reach a running Pod, and it ends gracefully when it is deleted', async () => {
    await joined.apply(pod('service', service))
    await joined.kubectl('wait', '--for=condition=Ready', '--timeout=90s', 'pod/service')
    const log = joined.spawn('logs', '-f', 'service')
    const lines = new Lines(log)
    await lines.until(/tick 2/)

    equal((await joined.run('exec', 'service', '--', 'node', '-e', 'console.log(6 * 7)')).text, '42\n')
    const failed = await joined.run('exec', 'service', '--', 'node', '-e', 'process.exit(5)')
    equal(failed.code, 5, failed.text)
    const echo = joined.spawn('exec', '-i', 'service', '--', 'node', '-e', 'process.stdin.pipe(process.stdout)')
    const echoed = new Lines(echo)
    // More than the buffers on the way hold.
    echo.stdin?.end(`${'x'.repeat(2_000_000)}\nend of input\n`)
    await echoed.until(/end of input/)
    equal((await once(echo, 'close'))[0], 0)
    equal(echoed.text.length, 2_000_014)

    const attached = joined.spawn('attach', '-i', 'service')
    const attachedLines = new Lines(attached)
    await attachedLines.until(/tick/)
    attached.stdin?.write('a word\n')
    await lines.until(/got a word/)
    attached.kill('SIGKILL')

    const forward = joined.spawn('port-forward', 'service', ':8080')
    const port = Number((await new Lines(forward).until(/127.0.0.1:(\d+) ->/))[1])
    for (const word of ['one', 'two']) equal(await ask(port, word), `pong ${word}`)
    forward.kill('SIGKILL')

    const began = performance.now()
    await joined.kubectl('delete', 'pod', 'service')
    match(await lines.until(/ended in order/).then(String), /ended/)
    ok(performance.now() - began < 15_000)
    equal((await joined.run('get', 'pod', 'service')).code, 1)
    equal(log.exitCode ?? (await once(log, 'close'))[0], 0)
  })

  test('a kubelet reads nothing that its Pods do not need, and writes nothing of others', async () => {
    const kubeconfig = join(joined.nodeFiles, 'kubeconfig')
    const can = async (...args: string[]) =>
      (await joined.run(`--kubeconfig=${kubeconfig}`, 'auth', 'can-i', ...args)).text.trim().split('\n').at(-1)
    await joined.kubectl('create', 'secret', 'generic', 'foreign', '--from-literal=value=x')
    equal(await can('get', 'secret/password'), 'yes')
    equal(await can('get', 'secret/foreign'), 'no')
    equal(await can('list', 'secrets'), 'no')
    equal(await can('get', 'node/n2'), 'no')
    equal(await can('create', 'clusterrolebindings'), 'no')
    const rejected = await joined.run(`--kubeconfig=${kubeconfig}`, 'label', 'node', 'n1', 'node-restriction.kubernetes.io/trusted=yes')
    match(rejected.text, /is not allowed to set or change the labels node-restriction.kubernetes.io\/trusted/)
    const token = await joined.run(`--kubeconfig=${kubeconfig}`, 'create', 'token', 'default')
    match(token.text, /not bound to a pod/)
  })

  test('a Node that reports the address of something else gets no request, and the reason is shown', async () => {
    const before = readFileSync(join(joined.nodeFiles, 'kubelet.crt'), 'utf8')
    ok(before)
    await joined.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n2' } })
    const status = {
      addresses: [{ type: 'InternalIP', address: joined.network.nodeAddress(1) }],
      daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    }
    await joined.kubectl('patch', 'node', 'n2', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }))
    await joined.apply({ ...pod('misplaced', ''), spec: { ...pod('misplaced', '').spec, nodeName: 'n2' } })
    for (const args of [
      ['logs', 'misplaced'],
      ['exec', 'misplaced', '--', 'true'],
    ]) {
      const { code, text } = await joined.run(...args)
      equal(code, 1)
      match(text, /the kubelet of node n2 at [0-9.]+:10250 cannot be reached: its certificate is not for the name n2/)
    }
    await joined.kubectl('delete', 'pod', 'misplaced', '--force', '--grace-period=0')
  })

  test('an unreachable kubelet is reported, with exec and logs', async () => {
    await joined.apply(pod('late', 'setInterval(() => {}, 1000)'))
    await joined.kubectl('wait', '--for=condition=Ready', '--timeout=90s', 'pod/late')
    await joined.node!.program('kubelet').kill()
    for (const args of [
      ['logs', 'late'],
      ['exec', 'late', '--', 'true'],
    ]) {
      const { code, text } = await joined.run(...args)
      equal(code, 1)
      match(text, /the kubelet of node n1 at [0-9.]+:10250 cannot be reached: ECONNREFUSED/)
    }
  })
})

/** Collects the output of a process. */
class Lines {
  text = ''
  #isEnded = false
  #changed = Promise.withResolvers<void>()

  constructor(child: ChildProcess) {
    const change = () => {
      this.#changed.resolve()
      this.#changed = Promise.withResolvers()
    }
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', chunk => {
        this.text += chunk
        change()
      })
    }
    child.once('close', () => {
      this.#isEnded = true
      change()
    })
  }

  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.text)
      if (found) return found
      if (this.#isEnded) throw new Error(`the process ended before ${pattern}:\n${this.text.slice(-2_000)}`)
      await this.#changed.promise
    }
  }
}

async function ask(port: number, word: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(word)
  let text = ''
  for await (const chunk of socket) text += chunk
  return text
}
