// Bundles the command line into a few files: a worker is read from 3 files instead of some 200, which takes it 60 ms and
// 11 MB less. `npm run build` makes dist/bundle/ for the package; in a checkout `npm start`, `npm test` and `npm run bench` make
// one when a source has changed, and bin/oarlock runs the sources themselves when it is not of them as they are.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'

/** Of a checkout, so many are kept: a process that runs from one loads further parts of it later. */
const kept = 3
const madeWith = ['package-lock.json', 'scripts/bundle.mjs']

/** What a worker loads before its engine starts is one file: from 30 it takes 12 ms more. */
const workerPath =
  /[/\\](cli[/\\]commands[/\\]worker|app[/\\]worker-process|execution[/\\]worker[/\\]execute-run|execution[/\\]worker[/\\]open-run-log|execution[/\\]engine[/\\]command[/\\]command)\.[jt]s$/

/**
 * Writes the bundle of `entry` (from the root, such as dist/cli/main.js) into `outdir` and returns the paths of its sources, from the root.
 * Dependencies, threads and data files stay where they are: to each module `import.meta` says what it says without a bundle.
 */
export async function bundle(root, entry, outdir) {
  const { rolldown } = await import('rolldown')
  const sources = []
  const transform = (text, path) => {
    if (isAbsolute(path)) sources.push(relative(root, path))
    return withPlace(text, path, outdir)
  }
  const bundling = await rolldown({
    cwd: root,
    input: { main: entry },
    platform: 'node',
    external: id => !/^[./]/.test(id),
    plugins: [{ name: 'places', transform }],
    logLevel: 'silent',
  })
  await bundling.write({
    dir: outdir,
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: { groups: [{ name: 'worker', test: workerPath }] },
  })
  await bundling.close()
  // Else Node looks into each file to see what it is.
  writeFileSync(join(outdir, 'package.json'), '{ "type": "module" }\n')
  return sources
}

function withPlace(text, path, outdir) {
  if (!text.includes('import.meta')) return undefined
  const from = place => JSON.stringify(relative(outdir, place).split(sep).join('/'))
  return (
    text
      // A module that is required where it is needed belongs into the bundle: it shares others, and what they remember, with the rest.
      .replace(
        /createRequire\(import\.meta\.url\)\(import\.meta\.url\.endsWith\('\.ts'\) \? '(\.[^']+)' : '(\.[^']+)'\)/g,
        path.endsWith('.ts') ? "require('$1')" : "require('$2')",
      )
      .replaceAll('import.meta.url', `new URL(${from(path)}, import.meta.url).href`)
      .replaceAll(
        'import.meta.dirname',
        `process.getBuiltinModule('node:url').fileURLToPath(new URL(${from(dirname(path))}, import.meta.url))`,
      )
  )
}

/** Makes the bundle of a checkout, if its sources are newer. What cannot be bundled runs from its sources: never fails. */
export async function bundleCheckout(root) {
  const cache = join(root, 'node_modules', '.cache', 'oarlock')
  const index = join(cache, 'bundle.json')
  if (isFresh(root, index)) return
  const startedMs = Date.now()
  const name = `bundle-${startedMs.toString(36)}-${process.pid}`
  try {
    mkdirSync(cache, { recursive: true })
    const sources = [...madeWith, ...(await bundle(root, 'src/cli/main.ts', join(cache, name)))]
    const changed = sources.find(path => statSync(join(root, path)).mtimeMs >= startedMs)
    if (changed !== undefined) throw new Error(`${changed} was written meanwhile`)
    const of = Object.fromEntries(sources.map(path => [path, versionOf(join(root, path))]))
    // Replaced as a whole, and never written in place: a copy of a checkout may share the file.
    writeFileSync(`${index}.${process.pid}`, JSON.stringify({ directory: name, sources: of }))
    renameSync(`${index}.${process.pid}`, index)
  } catch (error) {
    rmSync(join(cache, name), { recursive: true, force: true })
    console.error(`oarlock: runs from its sources, as they could not be bundled: ${error.message}`)
  }
  const old = readdirSync(cache, { withFileTypes: true }).filter(entry => entry.isDirectory() && entry.name.startsWith('bundle-'))
  for (const { name } of old.sort((a, b) => (a.name < b.name ? 1 : -1)).slice(kept))
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

/** As bin/oarlock reads it. */
function versionOf(path) {
  const { mtimeMs, size } = statSync(path)
  return `${mtimeMs} ${size}`
}
