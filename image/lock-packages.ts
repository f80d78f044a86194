/**
 * Writes image/packages.lock.json: the Debian packages of the image, with what they depend on, their versions and SHA-256, for each architecture.
 * `node image/lock-packages.ts`; needs gpgv, xz and dpkg. Run it to get the security updates of Debian, and commit the result.
 * `node image/lock-packages.ts FILE.json` adds the packages that FILE.json lists, and writes FILE.lock.json for "image/build.ts --packages".
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { architectures, type LockedPackage, type PackageLock, packageLock } from './debian-packages.ts'

type IndexEntry = LockedPackage & { readonly depends: readonly string[]; readonly provides: readonly string[] }
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
type Configuration = { suite: string; packages: string[]; without: Record<string, string> }
const readConfiguration = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Partial<Configuration>
const own = readConfiguration(fileURLToPath(new URL('packages.json', import.meta.url))) as Configuration
const [added] = process.argv.slice(2)
const more = added === undefined ? {} : readConfiguration(added)
const configuration: Configuration = {
  suite: own.suite,
  packages: [...own.packages, ...(more.packages ?? [])],
  // What is added may need what Oarlock does not, such as perl.
  without: Object.fromEntries(Object.entries({ ...own.without, ...more.without }).filter(([name]) => !more.packages?.includes(name))),
}
const archives = (suite: string) => [
  { base: 'https://deb.debian.org/debian', suite },
  { base: 'https://deb.debian.org/debian-security', suite: `${suite}-security` },
]

const lockedAt = `${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
const lock: PackageLock = { suite: configuration.suite, lockedAt, packages: {} }
for (const architecture of architectures) {
  const index = new Map<string, IndexEntry>()
  for (const archive of archives(configuration.suite))
    for (const entry of await readIndex(archive, architecture)) {
      const other = index.get(entry.name)
      if (!other || isNewer(entry.version, other.version)) index.set(entry.name, entry)
    }
  lock.packages[architecture] = closure(index).map(({ depends: _, provides: __, ...locked }) => locked)
  console.log(`${architecture}: ${lock.packages[architecture].length} packages`)
}
writeFileSync(added === undefined ? packageLock : added.replace(/(\.json)?$/, '.lock.json'), `${JSON.stringify(lock, null, 2)}\n`)

/** The entries of one archive; its index is verified by the signature of Debian. */
async function readIndex({ base, suite }: { base: string; suite: string }, architecture: string): Promise<IndexEntry[]> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-packages-'))
  try {
    const signed = join(directory, 'InRelease')
    const release = join(directory, 'Release')
    writeFileSync(signed, await download(`${base}/dists/${suite}/InRelease`))
    execFileSync('gpgv', ['--quiet', `--keyring=${keyring}`, `--output=${release}`, signed], { stdio: ['ignore', 'pipe', 'pipe'] })
    const path = `main/binary-${architecture}/Packages.xz`
    const bytes = await download(`${base}/dists/${suite}/${path}`)
    const digest = createHash('sha256').update(bytes).digest('hex')
    const isListed = readFileSync(release, 'utf8')
      .split('\n')
      .some(line => line.startsWith(` ${digest} `) && line.endsWith(` ${path}`))
    if (!isListed) throw new Error(`${base}/dists/${suite}/${path} has SHA-256 ${digest}, which InRelease does not list`)
    const text = execFileSync('xz', ['-dc'], { input: bytes, maxBuffer: 2 ** 30 }).toString('utf8')
    return text.split('\n\n').flatMap(paragraph => parseEntry(paragraph, base) ?? [])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function parseEntry(paragraph: string, base: string): IndexEntry | undefined {
  const fields = new Map(
    paragraph
      .split('\n')
      .flatMap(line => /^([A-Za-z0-9-]+): (.*)$/.exec(line)?.slice(1, 3).join('\0') ?? [])
      .map(line => line.split('\0') as [string, string]),
  )
  const [name, version, filename, sha256] = ['Package', 'Version', 'Filename', 'SHA256'].map(field => fields.get(field))
  if (!name || !version || !filename || !sha256) return undefined
  // The first alternative, without its version and architecture.
  const depends = `${fields.get('Pre-Depends') ?? ''},${fields.get('Depends') ?? ''}`
    .split(',')
    .map(each => each.split('|')[0]?.trim().split(/[ :(]/)[0] ?? '')
    .filter(Boolean)
  const provides = (fields.get('Provides') ?? '').split(',').map(each => each.trim().split(/[ :(]/)[0] ?? '')
  return { name, version, url: `${base}/${filename}`, sha256, depends, provides }
}

function closure(index: ReadonlyMap<string, IndexEntry>): IndexEntry[] {
  const found = new Map<string, IndexEntry>()
  const pending = [...configuration.packages]
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (found.has(name) || Object.hasOwn(configuration.without, name)) continue
    const entry = index.get(name) ?? onlyProvider(index, name)
    found.set(entry.name, entry)
    pending.push(...entry.depends)
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Of a virtual package. @throws {Error} if there are several, of which someone has to choose. */
function onlyProvider(index: ReadonlyMap<string, IndexEntry>, name: string): IndexEntry {
  const [first, ...others] = [...index.values()].filter(({ provides }) => provides.includes(name))
  if (first && others.length === 0) return first
  const providers = first ? `; it is provided by ${[first, ...others].map(each => each.name).join(', ')}` : ''
  throw new Error(
    `package ${name} is not in Debian ${configuration.suite}${providers}: list a package for it in "packages", and ${name} in "without"`,
  )
}

function isNewer(version: string, other: string): boolean {
  try {
    execFileSync('dpkg', ['--compare-versions', version, 'gt', other])
    return true
  } catch {
    return false
  }
}

async function download(url: string): Promise<Buffer> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}
