import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]
export type LockedPackage = { readonly name: string; readonly version: string; readonly url: string; readonly sha256: string }
export type PackageLock = {
  suite: string /** Such as `20261123T200000Z`: snapshots of this time have these versions. */
  lockedAt: string
  packages: Partial<Record<Architecture, LockedPackage[]>>
}

/** Of the packages of every image. */
export const packageLock = fileURLToPath(new URL('packages.lock.json', import.meta.url))

/**
 * Unpacks the locked packages into `root`; scripts of packages do not run. Writes the bundle of certificate authorities, which a script would.
 * @param lockFile `packageLock`, or a lock file with more packages. @param cacheDirectory keeps the downloaded packages.
 */
export async function unpackDebian(root: string, architecture: Architecture, lockFile: string, cacheDirectory: string): Promise<void> {
  const { lockedAt, packages: all } = JSON.parse(readFileSync(lockFile, 'utf8')) as PackageLock
  const packages = all[architecture] ?? []
  mkdirSync(cacheDirectory, { recursive: true })
  // The directories of the merged /usr have to exist before files are unpacked below /lib and /bin.
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', name), { recursive: true })
    execFileSync('ln', ['-sfn', `usr/${name}`, join(root, name)])
  }
  for (const locked of packages) {
    const file = await fetchPackage(locked, lockedAt, cacheDirectory)
    // Through tar, which keeps the links of the merged /usr; dpkg-deb -x would replace them.
    execFileSync('sh', [
      '-c',
      'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink --no-same-owner -C "$2"',
      'unpack',
      file,
      root,
    ])
  }
  for (const path of [
    'usr/share/doc',
    'usr/share/man',
    'usr/share/locale',
    'usr/share/info',
    'usr/share/lintian',
    'usr/share/bug',
    'var/cache',
    'var/log',
  ])
    rmSync(join(root, path), { recursive: true, force: true })
  const authorities = globSync('usr/share/ca-certificates/mozilla/*.crt', { cwd: root }).sort()
  mkdirSync(join(root, 'etc/ssl/certs'), { recursive: true })
  writeFileSync(join(root, 'etc/ssl/certs/ca-certificates.crt'), authorities.map(path => readFileSync(join(root, path), 'utf8')).join(''))
  // For scanners of vulnerabilities, which read the database of dpkg.
  mkdirSync(join(root, 'var/lib/dpkg/status.d'), { recursive: true })
  for (const { name, version } of packages)
    writeFileSync(
      join(root, 'var/lib/dpkg/status.d', name),
      `Package: ${name}\nStatus: install ok installed\nArchitecture: ${architecture}\nVersion: ${version}\n`,
    )
}

/** @throws {Error} if the downloaded file is not the locked one. */
async function fetchPackage({ url, sha256 }: LockedPackage, lockedAt: string, cacheDirectory: string): Promise<string> {
  const file = join(cacheDirectory, `${sha256}-${basename(url)}`)
  if (existsSync(file)) return file
  let response = await fetch(url)
  // Debian's servers remove old versions; its snapshots keep them.
  if (response.status === 404)
    response = await fetch(url.replace(/^https:\/\/deb\.debian\.org\/([a-z-]+)\//, `https://snapshot.debian.org/archive/$1/${lockedAt}/`))
  if (!response.ok) throw new Error(`${url} answered ${response.status}: run "node image/lock-packages.ts" for the present versions`)
  const bytes = Buffer.from(await response.arrayBuffer())
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (digest !== sha256) throw new Error(`${url} has SHA-256 ${digest}, but image/packages.lock.json has ${sha256}`)
  writeFileSync(`${file}.partial`, bytes)
  renameSync(`${file}.partial`, file)
  return file
}
