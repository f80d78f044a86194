// Starts the command line: from `dist/` (the package), or from `src/` (a checkout), whose bundle it uses as long as no source has
// changed since. Called by the shell script `oarlock`, and by `oarlock up` for each worker.
// The syntax is that of old versions of Node, so that they get as far as the message below.
'use strict'
const MIN_NODE_MAJOR = 24
if (Number(process.versions.node.split('.')[0]) < MIN_NODE_MAJOR) {
  process.stderr.write(
    `oarlock: Node.js ${process.version} is too old, ${MIN_NODE_MAJOR} or newer is required: install a newer one, or run "npm ci" in a checkout\n`,
  )
  process.exit(1)
}

const { existsSync, readFileSync, statSync } = require('node:fs')
const { homedir } = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')

const root = path.dirname(__dirname)
start()

function start() {
  // Set in the environment, not only in this process: threads and worker processes read it, and would otherwise strip the types of
  // every module again (measured: 0.3 s and 25 MB each). Not in a shared temporary directory, where other users could write.
  const isCheckout = existsSync(path.join(root, 'src'))
  const cache = isCheckout ? path.join(root, 'node_modules', '.cache') : path.join(homedir(), '.cache', 'oarlock')
  if (process.env.NODE_COMPILE_CACHE === undefined) process.env.NODE_COMPILE_CACHE = path.join(cache, 'node')
  require('node:module').enableCompileCache(process.env.NODE_COMPILE_CACHE)
  const bundle = isCheckout ? freshBundle(path.join(cache, 'oarlock')) : path.join(root, 'dist', 'bundle')
  const modules = path.join(root, ...(isCheckout ? ['src', 'cli', 'main.ts'] : ['dist', 'cli', 'main.js']))
  // `oarlock serve` must stay small: it starts 0.1 s later from its modules, and uses 2 MB less.
  const entry = bundle && process.argv[2] !== 'serve' ? path.join(bundle, 'main.js') : modules
  void import(pathToFileURL(entry).href)
}

/** The bundle that scripts/bundle.mjs made, unless a source has changed since. */
function freshBundle(cache) {
  // Workers run the same bundle as the process that starts them, whatever has changed since, and need not check the sources.
  if (process.env.OARLOCK_BUNDLE === undefined) process.env.OARLOCK_BUNDLE = findBundle(cache)
  const directory = process.env.OARLOCK_BUNDLE
  return directory !== '' && path.dirname(directory) === cache && existsSync(directory) ? directory : undefined
}

function findBundle(cache) {
  try {
    const { directory, sources } = JSON.parse(readFileSync(path.join(cache, 'bundle.json'), 'utf8'))
    for (const name in sources) {
      const { mtimeMs, size } = statSync(path.join(root, name))
      if (`${mtimeMs} ${size}` !== sources[name]) return ''
    }
    return path.join(cache, directory)
  } catch {
    return ''
  }
}
