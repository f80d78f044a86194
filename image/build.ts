/**
 * Builds the OCI image of Oarlock, one for all roles, as an archive: no Docker daemon and no root is needed. See docs/image.md.
 * `node image/build.ts [--output FILE] [--name NAME:TAG] [--architecture amd64|arm64] [--node FILE] [--engine NAME=FILE]... [--npm] [--packages FILE] [--operator FILE]`
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { bundleOperator } from './bundle-operator.ts'
import { type Architecture, architectures, packageLock, unpackDebian } from './debian-packages.ts'
import { type Layer, writeOciArchive } from './oci-archive.ts'

/** Also in charts/oarlock: `runAsUser`. The image has no compile cache of Node.js: V8 writes other bytes each time, and the digest would differ. */
const userId = 65532
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

const oarlockConfig = {
  Entrypoint: ['/opt/oarlock/bin/oarlock'],
  Cmd: ['--help'],
}
const oarlockLabels = {
  'org.opencontainers.image.title': 'Oarlock',
  'org.opencontainers.image.version': version,
  'org.opencontainers.image.licenses': 'Apache-2.0',
}
/** Names of the programs of engines in the image, such as `tofu`; empty for the base image. */
const enginesLabel = 'dev.oarlock.engines'

const help = `Usage: node image/build.ts [options]

Builds the OCI image of Oarlock as an archive, for "ctr images import", "podman load", "docker load" and "skopeo copy oci-archive:".

  --output FILE          archive to write (default: oarlock-image.tar)
  --name NAME:TAG        name of the image (default: localhost/oarlock:${version}; required with --operator)
  --architecture ARCH    ${architectures.join(' or ')} (default: that of this machine)
  --node FILE            program of Node.js for the architecture (default: that of the checkout)
  --engine NAME=FILE     program of an engine, which becomes /usr/local/bin/NAME; can be repeated
  --npm                  npm, with which workers install the packages of Node.js programs
  --packages FILE        Debian packages, as image/lock-packages.ts has locked them (default: image/packages.lock.json)
  --operator FILE        entry point of an operator built on oarlock/controller, which is bundled and replaces Oarlock in the image
  --help                 this text
`

const { values } = parseArgs({
  options: {
    output: { type: 'string', default: 'oarlock-image.tar' },
    name: { type: 'string' },
    architecture: { type: 'string', default: process.arch === 'x64' ? 'amd64' : process.arch },
    node: { type: 'string' },
    engine: { type: 'string', multiple: true, default: [] },
    npm: { type: 'boolean', default: false },
    packages: { type: 'string', default: packageLock },
    operator: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) process.stdout.write(help)
else await build()

async function build(): Promise<void> {
  // The mode of new directories depends on it, and so does the digest.
  process.umask(0o022)
  const architecture = values.architecture as Architecture
  if (!architectures.includes(architecture))
    fail(`--architecture is ${JSON.stringify(values.architecture)}, allowed: ${architectures.join(', ')}`)
  const isOwn = architecture === (process.arch === 'x64' ? 'amd64' : process.arch)
  if (!values.node && !isOwn)
    fail(`--architecture is ${architecture}, which is not that of this machine: set --node to a program of Node.js for it`)
  const engines = values.engine.map(parseEngine)
  if (!existsSync(values.packages)) fail(`--packages: ${values.packages} does not exist; image/lock-packages.ts writes it`)
  const { operator } = values
  if (operator !== undefined && values.name === undefined) fail('--name is missing: an image with --operator is not that of Oarlock')
  const name = values.name ?? `localhost/oarlock:${version}`
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock')
  const work = mkdtempSync(join(tmpdir(), 'oarlock-image-build-'))
  try {
    const layers: Layer[] = []
    const addLayer = (description: string): string => {
      const directory = join(work, `layer-${layers.length}`)
      mkdirSync(directory)
      layers.push({ description, directory })
      return directory
    }
    const system = addLayer('Debian packages (packages.lock.json)')
    progress('Debian packages')
    await unpackDebian(system, architecture, values.packages, join(cache, 'image-packages'))
    addAccounts(system)
    progress('Node.js')
    addProgram(addLayer('Node.js'), 'node', values.node ?? join(root, 'node_modules', 'node', 'bin', 'node'))
    for (const { name, file } of engines) {
      progress(`engine ${name}`)
      addProgram(addLayer(`engine ${name}`), name, file)
    }
    if (values.npm) {
      progress('npm')
      addNpm(addLayer('npm (npm/package-lock.json)'))
    }
    if (operator === undefined) {
      progress('Oarlock')
      addOarlock(addLayer(`Oarlock ${version}`), work)
    } else {
      progress('operator')
      const directory = addLayer('operator')
      await bundleOperator(operator, join(directory, 'opt', 'operator', 'main.mjs')).catch(error => fail(error.message))
      execFileSync('chmod', ['-R', 'u=rwX,go=rX', directory])
    }
    progress('archive')
    const { digest, sizeBytes } = await writeOciArchive({
      ...{ name, layers, architecture, output: values.output, createdAtSeconds: sourceDateEpoch() },
      layerCache: join(cache, 'image-layers'),
      config: {
        User: `${userId}:${userId}`,
        WorkingDir: '/home/oarlock',
        ...(operator === undefined
          ? { ...oarlockConfig, Labels: { ...oarlockLabels, [enginesLabel]: engines.map(({ name }) => name).join(' ') } }
          : { Entrypoint: ['/usr/local/bin/node', '/opt/operator/main.mjs'] }),
        Env: ['PATH=/opt/oarlock/bin:/usr/local/bin:/usr/bin:/bin', 'HOME=/home/oarlock'],
      },
    })
    process.stdout.write(`${name} ${digest} ${values.output} ${Math.round(sizeBytes / 2 ** 20)} MiB\n`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function parseEngine(text: string): { name: string; file: string } {
  const [, name, file] =
    /^([a-z][a-z0-9.-]*)=(.+)$/.exec(text) ?? fail(`--engine is ${JSON.stringify(text)}, expected NAME=FILE, such as tofu=./tofu`)
  if (!existsSync(file as string)) fail(`--engine ${name}: ${file} does not exist`)
  return { name: name as string, file: file as string }
}

function addAccounts(directory: string): void {
  const write = (path: string, text: string) => writeFileSync(join(directory, path), text)
  write('etc/passwd', `root:x:0:0:root:/root:/usr/sbin/nologin\noarlock:x:${userId}:${userId}:Oarlock:/home/oarlock:/usr/sbin/nologin\n`)
  write('etc/group', `root:x:0:\noarlock:x:${userId}:\n`)
  mkdirSync(join(directory, 'home', 'oarlock'), { recursive: true })
  mkdirSync(join(directory, 'tmp'), { recursive: true })
  chmodSync(join(directory, 'tmp'), 0o1777)
}

function addProgram(directory: string, name: string, file: string): void {
  const target = join(directory, 'usr', 'local', 'bin', name)
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(file, target)
  chmodSync(target, 0o755)
}

/** The npm of `image/npm/package-lock.json`. */
function addNpm(directory: string): void {
  const target = join(directory, 'usr', 'local', 'lib')
  mkdirSync(target, { recursive: true })
  const files = ['package.json', 'package-lock.json']
  for (const file of files) copyFileSync(join(root, 'image', 'npm', file), join(target, file))
  installLocked(target)
  for (const file of [...files, 'node_modules/.package-lock.json', 'node_modules/npm/docs', 'node_modules/npm/man'])
    rmSync(join(target, file), { recursive: true, force: true })
  execFileSync('chmod', ['-R', 'u=rwX,go=rX', target])
  const bin = join(directory, 'usr', 'local', 'bin')
  mkdirSync(bin)
  for (const program of ['npm', 'npx']) {
    const script = `#!/bin/sh\nexec /usr/local/bin/node /usr/local/lib/node_modules/npm/bin/${program}-cli.js "$@"\n`
    writeFileSync(join(bin, program), script, { mode: 0o755 })
  }
}

/** Installs exactly the packages of the lock file in `directory`, without those of development, and runs none of their scripts. */
function installLocked(directory: string): void {
  const args = ['ci', '--omit=dev', '--ignore-scripts', '--no-bin-links', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', args, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
}

/** The package as it is published, with the dependencies of the lock file. */
function addOarlock(directory: string, work: string): void {
  // It builds into dist/ of the checkout: one at a time.
  const lock = join(root, 'node_modules', '.cache', 'pack.lock')
  mkdirSync(dirname(lock), { recursive: true })
  const pack = ['npm', 'pack', '--json', '--loglevel=error', '--pack-destination', work]
  const output = execFileSync('flock', [lock, ...pack], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const packed = JSON.parse(output) as { filename: string }[]
  const target = join(directory, 'opt', 'oarlock')
  mkdirSync(target, { recursive: true })
  execFileSync('tar', ['-xzf', join(work, packed[0]?.filename ?? ''), '--strip-components=1', '-C', target])
  cpSync(join(root, 'package-lock.json'), join(target, 'package-lock.json'))
  installLocked(target)
  for (const path of [
    'package-lock.json',
    'node_modules/.package-lock.json',
    'docs',
    'examples',
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
  ])
    rmSync(join(target, path), { recursive: true, force: true })
  // Permissions of a checkout depend on the umask of its owner.
  execFileSync('chmod', ['-R', 'u=rwX,go=rX', target])
}

/** https://reproducible-builds.org/specs/source-date-epoch/; default: the time of the commit. */
function sourceDateEpoch(): number {
  const { SOURCE_DATE_EPOCH } = process.env
  if (SOURCE_DATE_EPOCH !== undefined) return Number(SOURCE_DATE_EPOCH)
  return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim())
}

function progress(what: string): void {
  process.stderr.write(`image: ${what}\n`)
}

function fail(message: string): never {
  process.stderr.write(`image: ${message}\n`)
  process.exit(2)
}
