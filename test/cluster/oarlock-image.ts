import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeOldest } from '../../image/oci-archive.ts'

const root = join(import.meta.dirname, '..', '..')
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock')
const images = join(cache, 'images')
const tofu = join(cache, 'bin', 'tofu')
export const tofuEngine = `tofu=${tofu}`
const repository = 'localhost/oarlock'
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
export const oarlockImage = `${repository}:${version}`
/** Checkouts of one machine share the cache. */
const keptImages = 8

/** Builds the image of this checkout with OpenTofu, once for all tests that use the same files. @returns the path of the archive. */
export function buildOarlockImage(): string {
  const archive = join(images, `${digestOfSources()}.tar`)
  build(root, archive, oarlockImage)
  return archive
}

/** Name of the image of an earlier commit. */
export const imageOfCommit = (commit: string): string => `${repository}:${commit}`

/** The same as {@link buildOarlockImage} of an earlier commit. */
export function buildImageOfCommit(commit: string): string {
  const archive = join(images, `commit-${commit}.tar`)
  const checkout = mkdtempSync(join(tmpdir(), 'oarlock-commit-'))
  try {
    execFileSync('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', commit, checkout], { cwd: root })
    // It is bundled with the tools of this checkout; the dependencies in the image are those of its own lock file.
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
    build(checkout, archive, imageOfCommit(commit))
  } finally {
    rmSync(checkout, { recursive: true, force: true })
  }
  return archive
}

/** By which a registry knows the image in an archive. */
export function imageDigest(archive: string): string {
  const index = execFileSync('tar', ['-xOf', archive, './index.json'], { encoding: 'utf8' })
  return JSON.parse(index).manifests[0].digest
}

/** One build at a time: tests that wait for it find the archive. An archive that exists waits for no build of another checkout. */
function build(checkout: string, archive: string, name: string): void {
  mkdirSync(images, { recursive: true })
  const command = [process.execPath, 'image/build.ts', '--output', archive, '--name', name, '--engine', tofuEngine]
  const locked = [join(images, 'lock'), 'sh', '-c', '[ -e "$0" ] || exec "$@"', archive, ...command]
  const env = { ...process.env, SOURCE_DATE_EPOCH: '0' }
  if (!existsSync(archive)) {
    const { status, stderr } = spawnSync('flock', locked, { cwd: checkout, encoding: 'utf8', env })
    if (status !== 0) throw new Error(`image/build.ts exited with ${status}:\n${stderr}`)
  }
  utimesSync(archive, new Date(), new Date())
  removeOldest(images, '.tar', keptImages)
}

/** Of everything that is in the image: tracked files and new ones, without tests. */
function digestOfSources(): string {
  const paths = ['bin', 'src', 'image', 'scripts', 'monitoring', 'package.json', 'package-lock.json', 'tsconfig*.json', 'LICENSE', 'NOTICE']
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...paths], { cwd: root, encoding: 'utf8' })
  const hash = createHash('sha256')
  for (const file of listed.trim().split('\n').sort()) {
    if (/\.test(ing)?\.ts$/.test(file) || !existsSync(join(root, file))) continue
    hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  }
  return hash
    .update(existsSync(tofu) ? String(statSync(tofu).size) : '')
    .digest('hex')
    .slice(0, 16)
}

/** The reason why the image cannot be built; undefined if it can. */
export function imageMissing(): string | undefined {
  const missing = ['dpkg-deb', 'tar', 'gzip', 'git'].filter(name => spawnSync('which', [name]).status !== 0)
  if (missing.length > 0) return `${missing.join(', ')} not found, which the image is built with`
  return existsSync(tofu) ? undefined : 'tofu not found: run scripts/build-tofu.sh (needs Go)'
}
