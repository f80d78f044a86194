// Builds the console's page for browsers: `node scripts/build-console.mjs OUTDIR`, or buildConsole(). `npm run build` makes dist/console/ for
// the package; in a checkout ensure-installed.mjs makes one when a source has changed. The directory holds index.html, assets/ with hashed names,
// which a server can let browsers keep forever, each file also compressed as .br and .gz, and manifest.json, the list of what may be served.
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { makeFresh } from './bundle.mjs'

const page = 'src/console/page'
/** Where the server has the page; src/console/protocol/paths.ts has it too. */
const base = '/console/'
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Writes the page into `outdir` and returns the paths of its sources, below the root. */
export async function buildConsole(checkout, outdir) {
  const root = realpathSync(checkout)
  const { sources, scripts } = await bundleScripts(root)
  const styles = globSync(`${page}/styles/*.css`, { cwd: root }).sort()
  const style = hashed('main', '.css', minifyCss(styles.map(path => readFileSync(join(root, path), 'utf8')).join('\n')))
  const icon = hashed('icon', '.svg', readFileSync(join(root, page, 'icon.svg'), 'utf8').trim())
  const [entry] = scripts.filter(script => script.isEntry)
  const files = [style, icon, ...scripts, { path: 'index.html', text: htmlOf(entry, style, icon) }]
  mkdirSync(join(outdir, 'assets'), { recursive: true })
  const written = await Promise.all(files.map(file => writeCompressed(outdir, file)))
  writeFileSync(join(outdir, 'manifest.json'), `${JSON.stringify({ files: Object.fromEntries(written) }, undefined, 2)}\n`)
  return ['scripts/build-console.mjs', ...sources, ...styles, `${page}/icon.svg`]
}

/** Makes the page of a checkout if a source has changed. node_modules/.cache/oarlock/console.json has its directory. */
export const buildCheckoutConsole = root =>
  makeFresh(root, 'console', directory => buildConsole(root, directory), 'cannot build the page of the console')

async function bundleScripts(root) {
  const { rolldown } = await import('rolldown')
  const sources = []
  const bundling = await rolldown({
    cwd: root,
    input: { main: `${page}/index.ts` },
    platform: 'browser',
    // package.json lists the modules of the command line that have side effects, and none of the page.
    treeshake: { moduleSideEffects: path => path.includes(`${page}/`) || undefined },
    tsconfig: join(root, page, 'tsconfig.json'),
    transform: { jsx: { runtime: 'automatic', importSource: 'preact' }, target: 'es2022' },
    plugins: [
      {
        name: 'sources',
        transform(_, path) {
          if (isAbsolute(path)) sources.push(relative(root, path))
        },
      },
    ],
    logLevel: 'silent',
  })
  const name = 'assets/[name]-[hash].js'
  const { output } = await bundling.generate({ minify: true, entryFileNames: name, chunkFileNames: name, comments: false })
  await bundling.close()
  const scripts = output.map(({ fileName, code, isEntry, imports }) => ({ path: fileName, text: code, isEntry, imports }))
  return { sources, scripts }
}

/** Without inline scripts and styles, which the content security policy of the server rejects. */
const htmlOf = (entry, style, icon) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Oarlock</title>
<link rel="icon" href="${base}${icon.path}">
<link rel="stylesheet" href="${base}${style.path}">
${entry.imports.map(path => `<link rel="modulepreload" href="${base}${path}">\n`).join('')}<script type="module" src="${base}${entry.path}"></script>
</head>
<body><div id="app"></div><noscript>The console needs JavaScript. Use kubectl or oarlock without it.</noscript></body>
</html>
`

const minifyCss = text =>
  text
    .replace(/\/\*.*?\*\//gs, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/: /g, ':')
    .replaceAll(';}', '}')
    .trim()

function hashed(name, extension, text) {
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 8)
  return { path: `assets/${name}-${hash}${extension}`, text }
}

async function writeCompressed(outdir, { path, text }) {
  const bytes = Buffer.from(text)
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
    promisify(gzip)(bytes, { level: 9 }),
  ])
  writeFileSync(join(outdir, path), bytes)
  writeFileSync(join(outdir, `${path}.br`), br)
  writeFileSync(join(outdir, `${path}.gz`), gz)
  return [path, { type: types[path.slice(path.lastIndexOf('.'))], bytes: bytes.length, brBytes: br.length }]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , outdir] = process.argv
  if (outdir === undefined) {
    console.error('usage: node scripts/build-console.mjs OUTDIR')
    process.exit(2)
  }
  await buildConsole(dirname(import.meta.dirname), outdir)
}
