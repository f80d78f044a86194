// Builds dist/ for the package: plain JavaScript and type declarations of src/, the data they read, and the console's page.
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildConsole } from './build-console.mjs'
import { bundle } from './bundle.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
rmSync(join(root, 'dist'), { recursive: true, force: true })
const tsc = join(root, 'node_modules', '.bin', 'tsc')
const { status } = spawnSync(tsc, ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)
for (const path of globSync('src/**/schemas/*.json', { cwd: root })) cpSync(join(root, path), join(root, path.replace(/^src/, 'dist')))
await bundle(root, 'dist/cli/main.js', join(root, 'dist', 'bundle'))
await buildConsole(root, join(root, 'dist', 'console'))
