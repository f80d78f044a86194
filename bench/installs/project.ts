/** The npm project of 40 Stacks: three packages of Pulumi and a local one, in a git repository whose commits decide what a program does. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { GitRepository } from '../../test/support/git-repository.ts'

/**
 * start: the program reports when it started. load: it declares its resources and, with the variable `ballastMb`, allocates as much. hold: it waits
 * until the file `gate` exists, with engine command only.
 */
export type Phase = 'start' | 'load' | 'hold'

export const resourcesUnderMocks = 12
/** Of a program that the Pulumi CLI runs, besides those under mocks. */
export const components = 10

/** 6 buckets of aws and 6 ConfigMaps of kubernetes under Pulumi's mocks. */
const declare = `
const { nameOf } = require('@bench/shared')
exports.declare = async () => {
  const pulumi = require('@pulumi/pulumi')
  let resources = 0
  await pulumi.runtime.setMocks({
    newResource: args => { resources++; return { id: args.name + '-id', state: args.inputs } },
    call: args => args.inputs,
  })
  const aws = require('@pulumi/aws')
  const k8s = require('@pulumi/kubernetes')
  const all = []
  for (let number = 0; number < ${resourcesUnderMocks / 2}; number++) {
    all.push(new aws.s3.Bucket(nameOf('bucket', number), { tags: { number: String(number) } }).id)
    all.push(new k8s.core.v1.ConfigMap(nameOf('config', number), { data: { number: String(number) } }).id)
  }
  await new Promise(resolve => pulumi.all(all).apply(resolve))
  return resources
}
exports.allocate = async megabytes => {
  const ballast = []
  for (let count = 0; count < megabytes; count += 50) {
    ballast.push(Buffer.alloc(50e6, 1))
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  if (megabytes > 0) await new Promise(resolve => setTimeout(resolve, 1_000))
  return ballast.length
}
`

/** Of engine command: outputs are written to a file. */
const commandProgram = `
const { writeFileSync } = require('node:fs')
const { declare, allocate } = require('./declare.js')
const startedMs = Number(process.argv[2])
declare().then(async resources => {
  const loadSeconds = process.uptime()
  const rssMb = process.memoryUsage().rss / 1e6
  await allocate(Number(process.env.OARLOCK_VAR_ballastMb || 0))
  writeFileSync(process.env.OARLOCK_OUTPUTS, JSON.stringify({ startedMs, resources, loadSeconds, rssMb }))
  process.exit(0)
}, error => { console.error(error); process.exit(1) })
`

const apply = `set -e
now=$(date +%s%3N)
case $(cat phase) in
  load) exec node index.js "$now" ;;
  hold) while [ ! -e "$OARLOCK_VAR_gate" ]; do sleep 0.2; done ;;
esac
echo "{\\"startedMs\\": $now}" > "$OARLOCK_OUTPUTS"
`

/**
 * Run by the Pulumi CLI. What it declares of both SDKs is under mocks in a process of its own, because it has no cloud account; the components are in the
 * state of the Stack. Memory is allocated in the update, when a component is in the state already.
 */
const pulumiProgram = `
const { execFileSync } = require('node:child_process')
const { readFileSync } = require('node:fs')
const pulumi = require('@pulumi/pulumi')
const { allocate } = require('./declare.js')
const commit = readFileSync('commit', 'utf8').trim()
const load = "require('./declare.js').declare().then(resources => { console.log(resources); process.exit(0) })"
class Part extends pulumi.ComponentResource {
  constructor(name) {
    super('bench:index:Part', name, {}, { parent: undefined })
    this.registerOutputs({ commit })
  }
}
module.exports = async () => {
  if (readFileSync('phase', 'utf8') === 'start') return {}
  const resources = Number(execFileSync('node', ['-e', load], { encoding: 'utf8', env: { PATH: process.env.PATH } }))
  const parts = Array.from({ length: ${components} }, (_, number) => new Part('part-' + number + '-' + commit))
  await new Promise(resolve => pulumi.all(parts.map(each => each.urn)).apply(resolve))
  if (!pulumi.runtime.isDryRun()) await allocate(Number(new pulumi.Config().get('ballastMb') || 0))
  return { resources, commit }
}
`

const versions = { '@pulumi/pulumi': '^3.0.0', '@pulumi/aws': '^7.0.0', '@pulumi/kubernetes': '^4.0.0' }

export class Project {
  readonly #repository: GitRepository
  #commits = 0

  /** With a lock file that npm writes now: the versions of the day. */
  constructor(directory: string, engine: 'command' | 'pulumi') {
    this.#repository = new GitRepository(directory)
    const files = {
      'package.json': JSON.stringify({
        ...{ name: 'bench', version: '1.0.0', private: true, main: 'index.js' },
        dependencies: { ...versions, '@bench/shared': 'file:shared' },
      }),
      'shared/package.json': JSON.stringify({ name: '@bench/shared', version: '1.0.0', main: 'index.js' }),
      'shared/index.js': 'exports.nameOf = (kind, number) => kind + "-" + number\n',
      'declare.js': declare,
      ...(engine === 'command'
        ? { 'apply.sh': apply, 'index.js': commandProgram }
        : { 'Pulumi.yaml': 'name: bench\nruntime: { name: nodejs, options: { typescript: false } }\n', 'index.js': pulumiProgram }),
    }
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, path)), { recursive: true })
      writeFileSync(join(directory, path), content)
    }
    execFileSync('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund'], { cwd: directory, stdio: 'pipe' })
  }

  get url(): string {
    return this.#repository.url
  }

  cloneTo(directory: string): void {
    execFileSync('git', ['clone', '--quiet', this.url, directory], { stdio: 'pipe' })
  }

  /** `isShared`: the local package changes, and with it the digest of the packages. */
  commit(phase: Phase, { isShared = false } = {}): { atMs: number; commit: string } {
    this.#commits++
    const shared = readFileSync(join(this.#repository.path, 'shared/index.js'), 'utf8')
    const commit = this.#repository.commit({
      phase,
      commit: String(this.#commits),
      'shared/index.js': isShared ? `${shared}// ${this.#commits}\n` : shared,
    })
    return { atMs: Date.now(), commit }
  }
}
