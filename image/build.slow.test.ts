import { deepEqual, equal, match } from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { buildOarlockImage, imageDigest, imageMissing, tofuEngine } from '../test/cluster/oarlock-image.ts'

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'oarlock-image-test-'))
const missing = join(folder, 'missing')
after(() => rmSync(folder, { recursive: true, force: true }))

test('a build with another umask, in another checkout and another temporary directory, has the digest of the image that other tests use', {
  skip: imageMissing() ?? false,
  timeout: 900_000,
}, () => {
  const checkout = join(folder, 'checkout')
  mkdirSync(checkout)
  // Tracked files and new ones, as they are.
  execFileSync(
    'sh',
    ['-c', 'git ls-files -co --exclude-standard -z | tar -c --null --files-from=- --ignore-failed-read | tar -x -C "$0"', checkout],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  const command = `umask 077 && exec "$0" image/build.ts --output "${folder}/image.tar" --engine ${tofuEngine}`
  const env = { ...process.env, TMPDIR: folder, SOURCE_DATE_EPOCH: '0' }
  const output = execFileSync('sh', ['-c', command, process.execPath], {
    ...{ encoding: 'utf8', cwd: checkout, env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const digest = /sha256:[0-9a-f]{64}/.exec(output)?.[0] ?? ''
  match(digest, /^sha256:/)
  const archive = buildOarlockImage()
  equal(digest, imageDigest(archive))

  const read = (path: string) => execFileSync('tar', ['-xOf', archive, `./${path}`], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  const blob = (name: string) => JSON.parse(read(`blobs/${name.replace(':', '/')}`))
  const { config } = blob(blob(digest).config.digest)
  deepEqual([config.User, config.Labels['dev.oarlock.engines']], ['65532:65532', 'tofu'])
})

test('npm of an image with --npm installs a project as user 65532, with a root file system that is read-only', {
  skip: imageMissing() ?? (process.getuid?.() === 0 ? false : 'needs root to enter the image'),
  timeout: 300_000,
}, () => {
  const archive = join(folder, 'npm.tar')
  const env = { ...process.env, TMPDIR: folder, SOURCE_DATE_EPOCH: '0' }
  const build = ['image/build.ts', '--output', archive, '--npm']
  const output = execFileSync(process.execPath, build, { cwd: root, encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] })
  const read = (path: string) => execFileSync('tar', ['-xOf', archive, `./${path}`], { maxBuffer: 2 ** 30 })
  const blob = (digest: string) => read(`blobs/${digest.replace(':', '/')}`)
  const { layers } = JSON.parse(blob(/sha256:[0-9a-f]{64}/.exec(output)?.[0] ?? '').toString()) as { layers: { digest: string }[] }
  const rootfs = join(folder, 'rootfs')
  mkdirSync(rootfs)
  for (const { digest } of layers) execFileSync('tar', ['-xzf', '-', '-C', rootfs], { input: blob(digest) })

  const project = join(folder, 'project')
  mkdirSync(join(project, 'local'), { recursive: true })
  writeFileSync(join(project, 'local', 'package.json'), '{ "name": "local", "version": "1.0.0", "main": "index.js" }')
  writeFileSync(join(project, 'local', 'index.js'), 'module.exports = "from a package"')
  writeFileSync(join(project, 'package.json'), '{ "name": "app", "version": "1.0.0", "dependencies": { "local": "file:local" } }')
  execFileSync('chown', ['-R', '65532:65532', project])
  const script = [
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t tmpfs tmpfs "$0/tmp" && cp -a "$1" "$0/tmp/project"',
    'exec chroot --userspec=65532:65532 "$0" /bin/sh -c \'cd /tmp/project && npm install --offline --no-audit --no-fund && node -p "require(\\"local\\")"\'',
  ].join(' && ')
  const { status, stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script, rootfs, project], {
    ...{ encoding: 'utf8', env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME: '/tmp' } },
  })
  equal(status, 0, stderr)
  match(stdout, /from a package/)
})

for (const [name, args, message] of [
  ['an engine without a file', ['--engine', 'tofu'], /--engine is "tofu", expected NAME=FILE/],
  ['an engine that does not exist', ['--engine', `tofu=${missing}`], /--engine tofu: \S+\/missing does not exist/],
  ['packages that were not locked', ['--packages', missing], /--packages: \S+\/missing does not exist; image\/lock-packages\.ts writes it/],
  ['an unknown architecture', ['--architecture', 'm68k'], /--architecture is "m68k", allowed: amd64, arm64/],
] as const)
  test(`a build rejects ${name}`, () => {
    const { status, stderr } = spawnSync(process.execPath, ['image/build.ts', ...args, '--output', join(folder, 'rejected.tar')], {
      cwd: root,
      encoding: 'utf8',
    })
    equal(status, 2)
    match(stderr, message)
  })
