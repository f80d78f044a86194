// Bundles the command line into a few files: a worker is read from 3 files instead of some 200, which saves it 60 ms and 11 MB.
// `npm run build` makes dist/bundle/ for the package. In a checkout `npm start`, `npm test` and `npm run bench` make one when a source
// has changed, and bin/oarlock.js runs the sources themselves when the bundle is older than they are.
import { mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, extname, isAbsolute, join, relative, sep } from 'node:path'

/** How many bundles of a checkout are kept: a running process loads further parts of the bundle it started from. */
const keptBundles = 3
const toolFiles = ['package-lock.json', 'scripts/bundle.mjs']

/** What a worker loads before its engine starts is one file: from 30 it takes 12 ms more. Below the source directory. */
export const workerModules = [
  'cli/commands/worker',
  'app/worker/worker-process',
  'execution/worker/run/index',
  'execution/engine/command/command',
]
const workerPath = new RegExp(`[/\\\\](${workerModules.join('|').replaceAll('/', '[/\\\\]')})\\.[jt]s$`)

/**
 * Writes the bundle of `entry` (below the root, such as dist/cli/main.js) into `outdir` and returns the paths of its sources, below the
 * root. Dependencies stay outside. So do the modules that threads and processes start with, and data files: the bundle finds them
 * through `sourceDirectory`.
 */
export async function bundle(checkout, entry, outdir) {
  const { rolldown } = await import('rolldown')
  // The bundler names modules by their real paths.
  const root = realpathSync(checkout)
  const sources = []
  const replaced = replacedModules(join(root, entry), outdir)
  const bundling = await rolldown({
    cwd: root,
    input: { main: entry },
    platform: 'node',
    external: id => !/^[./]/.test(id),
    plugins: [
      {
        name: 'sources',
        load: path => replaced.get(path),
        transform(_, path) {
          if (isAbsolute(path)) sources.push(relative(root, path))
        },
        generateBundle(_, files) {
          for (const file of Object.values(files)) if (file.type === 'chunk') file.code = toAscii(file)
        },
      },
    ],
    logLevel: 'silent',
  })
  await bundling.write({
    dir: outdir,
    chunkFileNames: '[name]-[hash].js',
    comments: { jsdoc: false },
    codeSplitting: { groups: [{ name: 'worker', test: workerPath }] },
  })
  await bundling.close()
  // Without it Node parses each file to find out what kind of module it is.
  writeFileSync(join(outdir, 'package.json'), '{ "type": "module" }\n')
  return sources
}

/**
 * Escapes characters outside ASCII. V8 keeps the text of every loaded module, and takes two bytes for each character of a file that has a single
 * one beyond Latin-1: 1.8 MB of `oarlock up`.
 */
function toAscii({ code, fileName }) {
  if (/String\.raw`[^`]*[^\0-\x7f]/.test(code))
    throw new Error(`${fileName} has String.raw with a character outside ASCII: use a plain string`)
  return code.replace(/[\u0080-\uffff]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The two modules that are different in a bundle, by path. Each describes its exports in its source. */
function replacedModules(entry, outdir) {
  const directory = dirname(dirname(entry))
  const extension = extname(entry)
  const module = path => join(directory, `${path}${extension}`)
  const fromBundle = JSON.stringify(relative(outdir, directory).split(sep).join('/'))
  return new Map([
    [
      module('kubernetes/util/source-files'),
      `import { join } from 'node:path'
       export const sourceDirectory = join(import.meta.dirname, ${fromBundle})
       export const moduleExtension = ${JSON.stringify(extension)}`,
    ],
    // CEL is part of the bundle, as it shares modules, and their state, with the rest; it is evaluated when it is required first.
    [module('kubernetes/schema/load-cel'), `export const loadCel = () => require(${JSON.stringify(`../cel/index${extension}`)})`],
  ])
}

/** Makes the bundle of a checkout if a source has changed. Never fails: what cannot be bundled runs from its sources. */
export async function bundleCheckout(root) {
  const cache = join(root, 'node_modules', '.cache', 'oarlock')
  const index = join(cache, 'bundle.json')
  if (isFresh(root, index)) return
  const startedMs = Date.now()
  const name = `bundle-${startedMs.toString(36)}-${process.pid}`
  try {
    mkdirSync(cache, { recursive: true })
    const sources = [...toolFiles, ...(await bundle(root, 'src/cli/main.ts', join(cache, name)))]
    const changed = sources.find(path => statSync(join(root, path)).mtimeMs >= startedMs)
    if (changed !== undefined) throw new Error(`${changed} was changed while it was bundled`)
    const versions = Object.fromEntries(sources.map(path => [path, versionOf(join(root, path))]))
    // Replaced atomically and never written in place: a copy of a checkout may share the file.
    writeFileSync(`${index}.${process.pid}`, JSON.stringify({ directory: name, sources: versions }))
    renameSync(`${index}.${process.pid}`, index)
  } catch (error) {
    rmSync(join(cache, name), { recursive: true, force: true })
    console.error(`oarlock: cannot bundle the sources, so they run unbundled: ${error.message}`)
  }
  const old = readdirSync(cache, { withFileTypes: true }).filter(entry => entry.isDirectory() && entry.name.startsWith('bundle-'))
  for (const { name } of old.sort((a, b) => (a.name < b.name ? 1 : -1)).slice(keptBundles))
    rmSync(join(cache, name), { recursive: true, force: true })
}

function isFresh(root, index) {
  try {
    const { sources } = JSON.parse(readFileSync(index, 'utf8'))
    return Object.entries(sources).every(([path, version]) => versionOf(join(root, path)) === version)
  } catch {
    return false
  }
}

/** Must be what bin/oarlock.js compares. */
function versionOf(path) {
  const { mtimeMs, size } = statSync(path)
  return `${mtimeMs} ${size}`
}
