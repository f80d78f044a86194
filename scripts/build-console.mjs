// Builds the console's page (src/console/page/) for browsers. `npm run build` makes dist/console/ for the package; in a checkout
// scripts/ensure-installed.mjs makes one in node_modules/.cache/oarlock/ when a source has changed. As a command: node scripts/build-console.mjs OUT
//
//   index.html                    the page: no script and no style in it, as its Content-Security-Policy demands
//   assets/NAME-HASH.js|css|svg   never change, as their names have the hash of their content
//   FILE.br, FILE.gz              each file, compressed
//   manifest.json                 { files: { PATH: { type, hash, bytes, brBytes } }, first: [paths that the first page loads] }
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { extname, isAbsolute, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

const pageDirectory = 'src/console/page'
const toolFiles = ['package-lock.json', 'scripts/build-console.mjs']
/** Must be `pagePath` of src/console/protocol/paths.ts. */
const basePath = '/console/'
/** A page that is open loads further parts of the build it started from, as long as its server runs. */
const keptBuilds = 3

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Builds the page into `outdir`, which must not have another build, and returns the paths of its sources below the root. */
export async function buildConsole(checkout, outdir) {
  const { rolldown } = await import('rolldown')
  // The bundler names modules by their real paths.
  const root = realpathSync(checkout)
  const sources = new Set()
  const bundling = await rolldown({
    cwd: root,
    input: { main: `${pageDirectory}/main.tsx` },
    platform: 'browser',
    transform: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    treeshake: { moduleSideEffects: id => /page[/\\]main\.tsx$|signals/.test(id) },
    plugins: [
      {
        name: 'sources',
        transform(_, path) {
          if (isAbsolute(path)) sources.add(relative(root, path))
        },
      },
    ],
    logLevel: 'silent',
  })
  const { output } = await bundling.generate({
    format: 'es',
    minify: true,
    entryFileNames: 'assets/[name]-[hash].js',
    chunkFileNames: 'assets/[name]-[hash].js',
    comments: { legal: false, jsdoc: false, annotation: false },
  })
  await bundling.close()

  const files = new Map()
  const read = path => {
    sources.add(path)
    return readFileSync(join(root, path), 'utf8')
  }
  const addHashed = (name, text) => {
    const path = `assets/${name.replace(/(\.\w+)$/, `-${hashOf(text).slice(0, 8)}$1`)}`
    files.set(path, text)
    return path
  }
  for (const { type, fileName, code } of output) {
    if (type !== 'chunk') throw new Error(`${fileName}: the page imports a file that is not a script`)
    files.set(fileName, code)
  }
  const chunks = new Map(output.map(chunk => [chunk.fileName, chunk]))
  const entry = output.find(({ isEntry }) => isEntry)
  const scripts = staticImports(entry, chunks)
  const sheets = readdirSync(join(root, pageDirectory, 'styles')).filter(name => name.endsWith('.css'))
  const style = addHashed(
    'main.css',
    minifyCss(
      sheets
        .sort()
        .map(name => read(`${pageDirectory}/styles/${name}`))
        .join('\n'),
    ),
  )
  const icon = addHashed('icon.svg', read(`${pageDirectory}/icon.svg`))
  files.set('index.html', pageHtml({ entry: entry.fileName, preloads: scripts.slice(1), style, icon }))

  const manifest = { files: {}, first: ['index.html', style, ...scripts] }
  mkdirSync(join(outdir, 'assets'), { recursive: true })
  await Promise.all(
    [...files].map(async ([path, text]) => {
      const body = Buffer.from(text)
      const [br, gz] = await Promise.all([compressBrotli(body), compressGzip(body, { level: 9 })])
      writeFileSync(join(outdir, path), body)
      writeFileSync(join(outdir, `${path}.br`), br)
      writeFileSync(join(outdir, `${path}.gz`), gz)
      manifest.files[path] = { type: types[extname(path)], hash: hashOf(text), bytes: body.length, brBytes: br.length }
    }),
  )
  // The order in which the bundler ends is not the same twice.
  manifest.files = Object.fromEntries(Object.entries(manifest.files).sort(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(join(outdir, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  return [...toolFiles, ...sources]
}

/** Builds the page of a checkout if a source has changed. Never fails: without it everything but the console works. */
export async function buildCheckoutConsole(root) {
  const cache = join(root, 'node_modules', '.cache', 'oarlock')
  const index = join(cache, 'console.json')
  if (isFresh(root, index)) return
  const startedMs = Date.now()
  const name = `console-${startedMs.toString(36)}-${process.pid}`
  try {
    mkdirSync(cache, { recursive: true })
    const sources = await buildConsole(root, join(cache, name))
    const changed = sources.find(path => statSync(join(root, path)).mtimeMs >= startedMs)
    if (changed !== undefined) throw new Error(`${changed} was changed while it was built`)
    const versions = Object.fromEntries(sources.map(path => [path, versionOf(join(root, path))]))
    // Replaced atomically and never written in place: a copy of a checkout may share the file.
    writeFileSync(`${index}.${process.pid}`, JSON.stringify({ directory: name, sources: versions, styles: styleNames(root) }))
    renameSync(`${index}.${process.pid}`, index)
  } catch (error) {
    rmSync(join(cache, name), { recursive: true, force: true })
    console.error(`oarlock: cannot build the console: ${error.message}`)
  }
  const old = readdirSync(cache, { withFileTypes: true }).filter(entry => entry.isDirectory() && entry.name.startsWith('console-'))
  for (const { name } of old.sort((a, b) => (a.name < b.name ? 1 : -1)).slice(keptBuilds))
    rmSync(join(cache, name), { recursive: true, force: true })
}

function isFresh(root, index) {
  try {
    const { sources, styles } = JSON.parse(readFileSync(index, 'utf8'))
    return styles === styleNames(root) && Object.entries(sources).every(([path, version]) => versionOf(join(root, path)) === version)
  } catch {
    return false
  }
}

/** A style sheet that was added is no change of a known source. */
const styleNames = root =>
  readdirSync(join(root, pageDirectory, 'styles'))
    .sort()
    .join(' ')

function versionOf(path) {
  const { mtimeMs, size } = statSync(path)
  return `${mtimeMs} ${size}`
}

/** The chunk and everything that it imports before it runs. */
function staticImports(chunk, chunks, found = []) {
  if (!chunk || found.includes(chunk.fileName)) return found
  found.push(chunk.fileName)
  for (const path of chunk.imports) staticImports(chunks.get(path), chunks, found)
  return found
}

function pageHtml({ entry, preloads, style, icon }) {
  const links = preloads.map(path => `<link rel="modulepreload" href="${basePath}${path}">\n`).join('')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Oarlock</title>
<link rel="icon" type="image/svg+xml" href="${basePath}${icon}">
<link rel="stylesheet" href="${basePath}${style}">
${links}<script type="module" src="${basePath}${entry}"></script>
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript. The command line shows the same: oarlock status</noscript>
</body>
</html>
`
}

/** Style sheets of ours have no strings with comments or double spaces. */
const minifyCss = text =>
  text
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/: /g, ':')
    .replace(/;}/g, '}')
    .trim()

const hashOf = text => createHash('sha256').update(text).digest('hex')
const compressGzip = promisify(gzip)
const compressBrotli = body =>
  promisify(brotliCompress)(body, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: body.length },
  })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = join(import.meta.dirname, '..')
  const outdir = process.argv[2] ?? join(root, 'dist', 'console')
  rmSync(outdir, { recursive: true, force: true })
  await buildConsole(root, outdir)
  const { files, first } = JSON.parse(readFileSync(join(outdir, 'manifest.json'), 'utf8'))
  for (const [path, { bytes, brBytes }] of Object.entries(files)) console.log(`${path}  ${bytes} bytes, ${brBytes} compressed`)
  console.log(`first page: ${first.reduce((sum, path) => sum + files[path].brBytes, 0)} bytes compressed`)
}
