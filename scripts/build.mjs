// Builds dist/ for the package: plain JavaScript and type declarations of src/.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
rmSync(join(root, 'dist'), { recursive: true, force: true })
const tsc = join(root, 'node_modules', '.bin', 'tsc')
const { status } = spawnSync(tsc, ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
process.exit(status ?? 1)
