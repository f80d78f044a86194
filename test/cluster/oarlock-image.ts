import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
export const oarlockImage = `localhost/oarlock:${version}`
const keptImages = 2

/** Builds the image of this checkout with OpenTofu, unless it was built from the same files. @returns the path of the archive. */
export function buildOarlockImage(): string {
  const directory = join(cache, 'images')
  const archive = join(directory, `${digestOfSources()}.tar`)
  mkdirSync(directory, { recursive: true })
  if (!existsSync(archive)) {
    const partial = `${archive}.${process.pid}`
    const args = ['image/build.ts', '--output', partial, '--engine', `tofu=${join(cache, 'bin', 'tofu')}`]
    const { status, stderr } = spawnSync(process.execPath, args, {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, SOURCE_DATE_EPOCH: '0' },
    })
    if (status !== 0) throw new Error(`image/build.ts exited with ${status}:\n${stderr}`)
    renameSync(partial, archive)
  }
  utimesSync(archive, new Date(), new Date())
  const others = globSync('*.tar', { cwd: directory }).map(name => join(directory, name))
  const newestFirst = others.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)
  for (const old of newestFirst.slice(keptImages)) rmSync(old, { force: true })
  return archive
}

/** Of everything that is in the image: tracked files and new ones, without tests. */
function digestOfSources(): string {
  const listed = execFileSync(
    'git',
    ['ls-files', '-co', '--exclude-standard', 'bin', 'src', 'image', 'scripts', 'monitoring', 'package.json', 'package-lock.json'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  )
  const hash = createHash('sha256')
  for (const file of listed.trim().split('\n').sort()) {
    if (/\.test(ing)?\.ts$/.test(file) || !existsSync(join(root, file))) continue
    hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  }
  const tofu = join(cache, 'bin', 'tofu')
  return hash
    .update(existsSync(tofu) ? String(statSync(tofu).size) : '')
    .digest('hex')
    .slice(0, 16)
}

/** The reason why the image cannot be built; undefined if it can. */
export function imageMissing(): string | undefined {
  const missing = ['dpkg-deb', 'tar', 'gzip', 'git'].filter(name => spawnSync('which', [name]).status !== 0)
  if (missing.length > 0) return `${missing.join(', ')} not found, which the image is built with`
  return existsSync(join(cache, 'bin', 'tofu')) ? undefined : 'tofu not found: run scripts/build-tofu.sh (needs Go)'
}
