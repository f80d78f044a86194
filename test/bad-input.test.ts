/**
 * What people get wrong, against a real `oarlock up`. Each error names the field, what came and what is allowed or to be done;
 * each start that fails says why and how to go on, exits as documented, and damages nothing.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import { exitCodes } from '../src/cli/exit-codes.ts'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue, type StatusError } from '../src/kubernetes/object/index.ts'
import { type Disk, mountTmpfs, tmpfsUnavailable } from './support/mount-tmpfs.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock, runProgram, skipWithout } from './support/run-program.ts'
import { condition, isUpToDate, StackFixture } from './support/stacks.ts'

const good: StackSpec = { engine: 'command', source: { inline: { files: { a: 'b' } } }, command: { apply: ['true'] } }
const withSource = (source: object) => ({ ...good, source })
const inline = { files: { a: 'b' } }

/** What a message has to name. */
type Says = { field: string; came: RegExp; allowed: RegExp }

/** What the API server refuses: it is never stored. */
const refused: ({ name: string; spec: object; kubectlAllowed?: RegExp } & Says)[] = [
  {
    name: 'an unknown field',
    spec: { ...good, intervall: '5m' },
    field: 'spec.intervall',
    came: /unknown field/,
    allowed: /did you mean interval\?.* allowed: engine, source/,
    // Kubernetes' own words, which clients know; `kubectl explain stack.spec` has the list.
    kubectlAllowed: /strict decoding error/,
  },
  {
    name: 'an unknown field in a list',
    spec: { ...good, env: [{ name: 'A', valeu: 'b' }] },
    field: 'spec.env[0].valeu',
    came: /unknown field/,
    allowed: /did you mean value\?.* allowed: name, value, secretKeyRef/,
    kubectlAllowed: /strict decoding error/,
  },
  {
    name: 'a wrong enum',
    spec: { ...good, engine: 'terrafrom' },
    field: 'spec.engine',
    came: /"terrafrom"/,
    allowed: /"terraform", "opentofu", "manifests", "command"/,
  },
  {
    name: 'a wrong type',
    spec: { ...good, suspend: 'yes' },
    field: 'spec.suspend',
    came: /"string"/,
    allowed: /must be of type boolean/,
  },
  {
    name: 'a wrong duration',
    spec: { ...good, timeout: 'soon' },
    field: 'spec.timeout',
    came: /"soon"/,
    allowed: /should match '\^\(\[0-9\]/,
  },
  {
    name: 'a number out of its range',
    spec: { ...good, priority: 5_000 },
    field: 'spec.priority',
    came: /5000/,
    allowed: /less than or equal to 1000/,
  },
  {
    name: 'inline without files',
    spec: withSource({ inline: { files: {} } }),
    field: 'spec.source.inline.files',
    came: /\{\}/,
    allowed: /at least 1/,
  },
  {
    name: 'no engine',
    spec: { source: { inline } },
    field: 'spec.engine',
    came: /Required value/,
    allowed: /Required value/,
  },
]

/** What is stored and then Stalled, or waits for somebody to make what is missing. */
const stopped: ({ name: string; spec: object; reason: string; waits?: true } & Says)[] = [
  {
    name: 'empty-source',
    spec: withSource({}),
    reason: 'InvalidSpec',
    field: 'spec.source',
    came: /Required value/,
    allowed: /specify exactly one of inline, path, git/,
  },
  {
    name: 'two-sources',
    spec: withSource({ inline, path: { path: '/srv' } }),
    reason: 'InvalidSpec',
    field: 'spec.source',
    came: /got inline and path/,
    allowed: /exactly one of inline, path, git/,
  },
  {
    name: 'cycle-a',
    spec: { ...good, dependsOn: [{ name: 'cycle-b' }] },
    reason: 'DependencyCycle',
    field: 'spec.dependsOn',
    came: /cycle-a → cycle-b → cycle-c → cycle-a/,
    allowed: /Remove one of these references/,
  },
  {
    name: 'cycle-b',
    spec: { ...good, dependsOn: [{ name: 'cycle-c' }] },
    reason: 'DependencyCycle',
    field: 'spec.dependsOn',
    came: /cycle-b → cycle-c → cycle-a → cycle-b/,
    allowed: /Remove one of these references/,
  },
  {
    name: 'cycle-c',
    spec: { ...good, variablesFrom: [{ stackRef: { name: 'cycle-a' } }] },
    reason: 'DependencyCycle',
    field: 'spec.variablesFrom[].stackRef',
    came: /cycle-c → cycle-a → cycle-b → cycle-c/,
    allowed: /Remove one of these references/,
  },
  {
    name: 'missing-dependency',
    spec: { ...good, dependsOn: [{ name: 'nowhere' }] },
    reason: 'DependencyNotFound',
    waits: true,
    field: 'spec.dependsOn[0].name',
    came: /"nowhere"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'missing-outputs',
    spec: { ...good, variablesFrom: [{ stackRef: { name: 'nowhere' } }] },
    reason: 'DependencyNotFound',
    waits: true,
    field: 'spec.variablesFrom[0].stackRef.name',
    came: /"nowhere"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'path-outside',
    spec: withSource({ path: { path: '/etc' } }),
    reason: 'SourceNotAllowed',
    field: 'spec.source.path.path',
    came: /"\/etc"/,
    allowed: /not below an allowed directory.*--allow-path DIR/,
  },
  {
    name: 'file-url-outside',
    spec: withSource({ git: { url: 'file:///etc' } }),
    reason: 'SourceNotAllowed',
    field: 'spec.source.git.url',
    came: /"(file:\/\/)?\/etc"/,
    allowed: /not below an allowed directory.*--allow-path DIR/,
  },
  {
    name: 'path-relative',
    spec: withSource({ path: { path: 'srv/stacks' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.path.path',
    came: /"srv\/stacks"/,
    allowed: /must be an absolute path/,
  },
  {
    name: 'dots-in-a-name',
    spec: withSource({ inline: { files: { '../x.tf': '' } } }),
    reason: 'InvalidSpec',
    field: 'spec.source.inline.files[../x.tf]',
    came: /"\.\.\/x\.tf"/,
    allowed: /must not contain "\.\."/,
  },
  {
    name: 'absolute-name',
    spec: withSource({ inline: { files: { '/etc/passwd': '' } } }),
    reason: 'InvalidSpec',
    field: 'spec.source.inline.files[/etc/passwd]',
    came: /"\/etc\/passwd"/,
    allowed: /must be relative/,
  },
  {
    name: 'git-option',
    spec: withSource({ git: { url: '--upload-pack=touch /tmp/x' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.git.url',
    came: /"--upload-pack=touch \/tmp\/x"/,
    allowed: /must not start with "-"; must be https:\/\/host\/path, ssh:/,
  },
  {
    name: 'git-helper',
    spec: withSource({ git: { url: 'ext::sh -c touch% /tmp/x' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.git.url',
    came: /"ext::sh -c/,
    allowed: /must not name a remote helper.*must be https:/,
  },
  {
    name: 'git-two-refs',
    spec: withSource({ git: { url: 'https://example.invalid/a.git', branch: 'main', tag: 'v1' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.git',
    came: /got branch and tag/,
    allowed: /at most one of branch, tag, commit/,
  },
  {
    name: 'too-long',
    spec: withSource({ inline: { files: { 'big.txt': 'x'.repeat(600_000) } } }),
    reason: 'InvalidSpec',
    field: 'spec.source.inline.files',
    came: /have 600000 bytes/,
    allowed: /not be more than 524288 bytes; put them in a git repository/,
  },
  {
    name: 'missing-secret',
    spec: { ...good, variablesFrom: [{ secretRef: { name: 'nowhere' } }] },
    reason: 'InputNotFound',
    waits: true,
    field: 'spec.variablesFrom[0].secretRef.name',
    came: /"nowhere" does not exist in namespace "default"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'missing-env-secret',
    spec: { ...good, env: [{ name: 'TOKEN', secretKeyRef: { name: 'nowhere', key: 'token' } }] },
    reason: 'InputNotFound',
    waits: true,
    field: 'spec.env[0].secretKeyRef.name',
    came: /"nowhere" does not exist in namespace "default"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'no-command',
    spec: { engine: 'command', source: { inline } },
    reason: 'InvalidSpec',
    field: 'spec.command.apply',
    came: /Required value/,
    allowed: /requires a program to apply with, such as/,
  },
  {
    name: 'reserved-variable',
    spec: { ...good, env: [{ name: 'OARLOCK_EPOCH', value: '9' }] },
    reason: 'InvalidSpec',
    field: 'spec.env[0].name',
    came: /"OARLOCK_EPOCH"/,
    allowed: /names that start with OARLOCK_ are reserved/,
  },
]

const manifest = (name: string, spec: object) =>
  JSON.stringify({ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata: { name, namespace: 'default' }, spec })

function says(text: string, { field, came, allowed }: Says): void {
  ok(text.includes(field), `the field ${field} is not named in: ${text}`)
  match(text, came, 'what came')
  match(text, allowed, 'what is allowed')
}

describe('a Stack that cannot be right', { concurrency: 4 }, () => {
  const dataDir = makeDataDir()
  let oarlock: OarlockProcess
  let rig: StackFixture
  before(async () => {
    oarlock = await startOarlock(dataDir)
    rig = new StackFixture(oarlock.client)
    // All at once: what each says does not depend on the others, but for the cycle, which needs them all.
    await Promise.all(stopped.map(({ name, spec }) => rig.create(name, spec as StackSpec)))
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })
  const apply = (input: string) => runOarlock(['apply', '-f', '-'], { input, env: { KUBECONFIG: oarlock.kubeconfig } })
  const kubectl = (args: string[], input: string) =>
    runProgram('kubectl', ['--cache-dir', join(dataDir, 'kubectl-cache'), ...args], { input, env: { KUBECONFIG: oarlock.kubeconfig } })

  for (const { name, spec, kubectlAllowed, ...want } of refused) {
    test(`${name} is refused by oarlock apply`, async () => {
      const { code, stdout, stderr } = await apply(manifest('refused', spec))
      says(stderr, want)
      deepEqual([code, stdout], [exitCodes.refused, ''])
      equal(await rig.stacks.getOrUndefined('refused', { namespace: 'default' }), undefined)
    })

    for (const args of name === 'an unknown field' ? [[], ['--server-side']] : [[]]) {
      test(`${name} is refused by kubectl apply ${args}`, { skip: skipWithout('kubectl') }, async () => {
        const { code, stderr } = await kubectl(['apply', ...args, '-f', '-'], manifest('refused', spec))
        says(stderr, { ...want, allowed: kubectlAllowed ?? want.allowed })
        equal(code, 1)
      })
    }
  }

  test('an inline file of 5 MB is refused, by size and by name', async () => {
    const input = manifest('huge', withSource({ inline: { files: { 'big.bin': 'x'.repeat(5_000_000) } } }))
    const { code, stderr } = await apply(input)
    says(stderr, {
      field: 'spec.source.inline.files',
      came: /have 5000000 bytes/,
      allowed: /not be more than 524288 bytes; put them in a git/,
    })
    equal(code, exitCodes.refused)
    if (skipWithout('kubectl')) return
    const answer = await kubectl(['apply', '-f', '-'], input)
    says(answer.stderr, { field: 'the body of the request', came: /got \d{8}/, allowed: /at most 3145728 bytes/ })
    equal(answer.code, 1)
  })

  for (const { name, reason, waits, ...want } of stopped) {
    test(`${name.replaceAll('-', ' ')}: ${reason}`, async () => {
      const stack = await rig.until(name, reason, now => isUpToDate(now) && condition(now, 'Ready')?.reason === reason)
      says(condition(stack, 'Ready')?.message ?? '', want)
      const { conditions } = stack.status ?? {}
      equal(isConditionTrue(conditions, 'Stalled'), !waits)
      equal(isConditionTrue(conditions, 'Reconciling'), waits === true)
      deepEqual(await rig.runsOf(name), [], 'a Run was made of it')
    })
  }

  const head = 'apiVersion: oarlock.dev/v1alpha1\nkind: Stack\n'
  for (const [name, input, code, want] of [
    ['YAML that cannot be read', 'a: [b\n', exitCodes.refused, /stdin:2:1: .*must be sufficiently indented/],
    ['a key that is there twice', 'a: 1\na: 2\n', exitCodes.refused, /stdin:2:1: Map keys must be unique/],
    ['nothing', '', exitCodes.usage, /no object found in stdin/],
    ['text', 'just text', exitCodes.refused, /stdin:1: must be a Kubernetes object, got "just text"/],
    ['no apiVersion', 'kind: Stack\n', exitCodes.refused, /stdin:1: apiVersion must be a non-empty string, got nothing/],
    ['no name', head, exitCodes.refused, /stdin:1: metadata\.name must be a non-empty string, got nothing/],
    ['no spec', `${head}metadata: { name: a }\n`, exitCodes.refused, /spec: Required value/],
    ['an unknown kind', `${head.replace('Stack', 'Stak')}metadata: { name: a }\n`, exitCodes.notFound, /no kind "Stak" in apiVersion/],
    ['an unknown namespace', manifest('a', good).replace('"default"', '"nowhere"'), exitCodes.notFound, /namespaces "nowhere" not found/],
  ] as const) {
    test(`oarlock apply of ${name}: exit ${code}`, async () => {
      const ended = await apply(input)
      match(ended.stderr, want)
      deepEqual([ended.code, ended.stdout], [code, ''])
    })
  }

  test('what was missing and is made lets the Stack go on by itself', async () => {
    await rig.create('late', { ...good, dependsOn: [{ name: 'made-later' }] })
    await rig.until('late', 'DependencyNotFound', stack => condition(stack, 'Ready')?.reason === 'DependencyNotFound')
    await rig.create('made-later', good)
    await rig.untilReady('late')
  })
})

const dataFlags = (dataDir: string) => ['--data', dataDir, '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0']
const up = (dataDir: string, ...args: string[]) => runOarlock(['up', ...dataFlags(dataDir), ...args])

/** Starts, looks whether what was stored before is there, and stops. */
async function isUnharmed(dataDir: string): Promise<void> {
  const oarlock = await startOarlock(dataDir)
  try {
    equal((await oarlock.client.resource(configMapResource).get('before', { namespace: 'default' })).data?.what, 'was here')
  } finally {
    equal(await oarlock.stop(), 0)
  }
}

async function store(oarlock: OarlockProcess): Promise<void> {
  await oarlock.client
    .resource(configMapResource)
    .create({ metadata: { name: 'before', namespace: 'default' }, data: { what: 'was here' } })
}

describe('a start that cannot work', { concurrency: 3 }, () => {
  for (const [what, file] of [
    ['the objects', 'oarlock.db'],
    ['the states', join('state', 'state.db')],
  ] as const) {
    test(`a data directory of a newer version (${what}) is left as it is`, async () => {
      const dataDir = makeDataDir()
      const first = await startOarlock(dataDir)
      await store(first)
      equal(await first.stop(), 0)
      const path = join(dataDir, file)
      const version = setVersion(path, 99)
      const before = readFileSync(path)

      const { code, stderr } = await up(dataDir)
      equal(code, exitCodes.dataDirectory, stderr)
      match(stderr, /newer/)
      match(stderr, /99/)
      match(stderr, new RegExp(`\\b${version}\\b`), 'the version that this program knows')
      match(stderr, /use the newer version of oarlock/)
      ok(before.equals(readFileSync(path)), 'the file was written to')

      setVersion(path, version)
      await isUnharmed(dataDir)
      removeDirectory(dataDir)
    })
  }

  for (const { what, file, damage, want } of [
    {
      what: 'a damaged database of objects',
      file: 'oarlock.db',
      damage: (bytes: Buffer) => Buffer.concat([Buffer.from('this is not a database'), bytes.subarray(22)]),
      want: /oarlock.db is corrupt .* Restore a backup \(oarlock restore BACKUP --data .* --force\)/s,
    },
    {
      what: 'a damaged database of states',
      file: join('state', 'state.db'),
      damage: (bytes: Buffer) => Buffer.concat([Buffer.from('this is not a database'), bytes.subarray(22)]),
      want: /state.*restore the directory from a backup, or choose another directory with --data/s,
    },
    {
      what: 'the key of another data directory',
      file: join('keys', 'state.key'),
      damage: () => Buffer.from(`${'ab'.repeat(32)}\n`),
      want: /key.*restore the file keys\/state\.key of this data directory/s,
    },
  ]) {
    test(`${what}: exit 7; with the right file again all is there`, async () => {
      const dataDir = makeDataDir()
      const first = await startOarlock(dataDir)
      await store(first)
      equal(await first.stop(), 0)
      const path = join(dataDir, file)
      const right = readFileSync(path)
      writeFileSync(path, damage(right))
      const { code, stderr } = await up(dataDir)
      equal(code, exitCodes.dataDirectory, stderr)
      match(stderr, want)
      writeFileSync(path, right)
      await isUnharmed(dataDir)
      removeDirectory(dataDir)
    })
  }

  test('a second process on the same data directory is refused; the first and its files stay', async () => {
    const dataDir = makeDataDir()
    const first = await startOarlock(dataDir)
    await store(first)
    const kubeconfig = readFileSync(first.kubeconfig, 'utf8')
    const { code, stderr } = await up(dataDir)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, new RegExp(`${dataDir}.* in use`))
    match(stderr, /stop the other process, or choose another directory with --data/)
    equal(readFileSync(first.kubeconfig, 'utf8'), kubeconfig)
    const rig = new StackFixture(first.client)
    await rig.create('after', good)
    await rig.untilReady('after')
    equal(await first.stop(), 0)
    await isUnharmed(dataDir)
    removeDirectory(dataDir)
  })

  test('a port in use names the flag; another start works', async () => {
    const dataDir = makeDataDir()
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as { port: number }
    await Promise.all(
      ['--listen', '--http'].map(async flag => {
        const own = join(dataDir, flag)
        const { code, stderr } = await up(own, flag, `127.0.0.1:${port}`)
        equal(code, exitCodes.listen, stderr)
        match(stderr, new RegExp(`127.0.0.1:${port}.* is in use by another process`))
        match(stderr, new RegExp(`${flag} HOST:PORT`))
      }),
    )
    holder.close()
    const next = await startOarlock(join(dataDir, '--http'))
    equal(await next.stop(), 0)
    removeDirectory(dataDir)
  })

  for (const [value, want] of [
    ['', /address "" must be HOST:PORT/],
    ['nowhere', /address "nowhere" must be HOST:PORT with a port from 0 to 65535/],
    ['127.0.0.1:99999', /address "127\.0\.0\.1:99999" must be HOST:PORT/],
    ['http://127.0.0.1:7466', /address "http:\/\/127\.0\.0\.1:7466" must be HOST:PORT/],
  ] as const) {
    test(`--listen ${JSON.stringify(value)} is a usage error`, async () => {
      const dataDir = makeDataDir()
      const { code, stderr } = await up(dataDir, '--listen', value)
      equal(code, exitCodes.usage, stderr)
      match(stderr, want)
      removeDirectory(dataDir)
    })
  }

  for (const [args, want] of [
    [['--data', ''], /--data must not be empty/],
    [['--http', 'nonsense'], /address "nonsense" must be HOST:PORT/],
    [['--max-workers', '0'], /'0' is invalid.*An integer >= 1 is expected/],
    [['--grace', 'soon'], /'soon' is invalid.*90s, 5m or 1h30m/],
    [['--log-level', 'loud'], /'loud' is invalid.*debug, info, warn, error/],
  ] as const) {
    test(`oarlock up ${args.join(' ')} is a usage error`, async () => {
      const dataDir = makeDataDir()
      const { code, stderr } = await up(dataDir, ...args)
      equal(code, exitCodes.usage, stderr)
      match(stderr, want)
      removeDirectory(dataDir)
    })
  }

  test('an address that is not of this machine', async () => {
    const dataDir = makeDataDir()
    const { code, stderr } = await up(dataDir, '--listen', '192.0.2.1:0')
    equal(code, exitCodes.listen, stderr)
    match(stderr, /cannot listen on 192\.0\.2\.1:0, .*\(EADDRNOTAVAIL\)/)
    removeDirectory(dataDir)
  })
})

describe('a disk that takes nothing', { concurrency: 3 }, () => {
  const skip = tmpfsUnavailable() ?? false
  const mounted: Disk[] = []
  const mount = (bytes: number): Disk => {
    const disk = mountTmpfs(bytes)
    mounted.push(disk)
    return disk
  }
  after(async () => {
    for (const disk of mounted) await disk.unmount()
  })

  test('a read-only data directory: exit 7, and it works once it is writable', { skip }, async () => {
    const disk = mount(24 * 1024 * 1024)
    const first = await startOarlock(disk.path)
    await store(first)
    equal(await first.stop(), 0)
    disk.setReadOnly(true)
    const { code, stderr } = await up(disk.path)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, /cannot write/)
    match(stderr, /check its owner and mode, or choose another/)
    disk.setReadOnly(false)
    await isUnharmed(disk.path)
  })

  test('no room for a new data directory: exit 7', { skip }, async () => {
    const disk = mount(32 * 1024)
    const { code, stderr } = await up(join(disk.path, 'data'))
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, /full|no room/i)
    match(stderr, /free some space/)
  })

  test('a disk that fills up refuses writes and reads on; a start on it exits 7; with room again nothing is lost', { skip }, async () => {
    const disk = mount(24 * 1024 * 1024)
    const dataDir = join(disk.path, 'data')
    const ballast = join(disk.path, 'ballast')
    const first = await startOarlock(dataDir)
    await store(first)
    fill(ballast)
    const configMaps = first.client.resource(configMapResource)
    const acknowledged: string[] = []
    let refusal: StatusError | undefined
    for (let i = 0; i < 200 && !refusal; i++) {
      const metadata = { name: `filler-${i}`, namespace: 'default' }
      await configMaps.create({ metadata, data: { text: 'x'.repeat(100_000) } }).then(
        () => acknowledged.push(metadata.name),
        error => (refusal = error),
      )
    }
    match(refusal?.message ?? 'no write was refused', /disk of the data directory is full/)
    equal(refusal?.code, 507)
    equal((await configMaps.get('before', { namespace: 'default' })).data?.what, 'was here', 'reads go on')
    await first.kill()

    const { code, stderr } = await up(dataDir)
    equal(code, exitCodes.dataDirectory, stderr)
    match(stderr, /full|no room/i)
    match(stderr, /free some space/)

    writeFileSync(ballast, '')
    const again = await startOarlock(dataDir)
    const names = new Set(
      (await again.client.resource(configMapResource).listAll({ namespace: 'default' })).items.map(o => o.metadata.name),
    )
    deepEqual(
      acknowledged.filter(name => !names.has(name)),
      [],
      'acknowledged writes were lost (invariant 5)',
    )
    const rig = new StackFixture(again.client)
    await rig.create('after', good)
    await rig.untilReady('after')
    equal(await again.stop(), 0)
    await isUnharmed(dataDir)
  })
})

/** Sets the format version of a database and returns what it was. */
function setVersion(path: string, version: number): number {
  const database = new DatabaseSync(path)
  const { user_version: old } = database.prepare('PRAGMA user_version').get() as { user_version: number }
  database.exec(`PRAGMA user_version=${version}; PRAGMA wal_checkpoint(TRUNCATE)`)
  database.close()
  return old
}

/** Writes until nothing more fits. */
function fill(path: string): void {
  for (let bytes = 1 << 20; bytes >= 4096; ) {
    try {
      writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' })
    } catch {
      bytes >>= 1
    }
  }
}
