// Adds what `npm install` leaves out of package-lock.json when a registry does not carry every platform's optional packages: an entry
// for each, with its version and platform, so that `npm ci` accepts the lock file everywhere. Run it after `npm install`; `--check`
// only reports. Entries made here have no `integrity`, as the registry at hand has no such package to take it from: npm verifies those
// packages by TLS only, and fills the field in at the next `npm install` against a registry that has them.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const path = join(dirname(dirname(fileURLToPath(import.meta.url))), 'package-lock.json')
const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

/** Platform fields as the packages themselves declare them, read from names such as `@rolldown/binding-linux-x64-musl`. */
function platformOf(name) {
  const words = name.split('/').pop().split('-')
  const cpu = processors.find(one => words.some(word => word === one || (one === 'arm' && word === 'arm')))
  const os = systems.find(one => words.includes(one))
  if (cpu === undefined || (os === undefined && cpu !== 'wasm32'))
    throw new Error(`${name}: no known platform in the name; add it to ${import.meta.filename}`)
  const libc = words.includes('musl') ? ['musl'] : os === 'linux' && words.some(word => word.startsWith('gnu')) ? ['glibc'] : undefined
  return { cpu: [cpu], ...(libc && { libc }), ...(os && { os: [os] }) }
}

const lock = JSON.parse(readFileSync(path, 'utf8'))
const added = []
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`
    if (lock.packages[key] !== undefined) continue
    lock.packages[key] = { version, ...(entry.dev && { dev: true }), ...platformOf(name), optional: true }
    added.push(`${name}@${version}`)
  }
}
if (added.length === 0) console.log('package-lock.json has an entry for every optional package')
else if (process.argv.includes('--check')) {
  console.error(`package-lock.json lacks ${added.join(', ')}\nrun: node scripts/complete-lock-file.mjs`)
  process.exitCode = 1
} else {
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
  writeFileSync(path, `${JSON.stringify(lock, undefined, 2)}\n`)
  console.log(`package-lock.json: added ${added.length} optional packages of other platforms`)
}
