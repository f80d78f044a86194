/**
 * Copies an example provider out of the checkout, as a package of its own: its imports name the entry points of `oarlock`.
 * `node examples/copy-provider.ts postgresql|kubernetes|ansible DIRECTORY`
 */
import { cpSync, existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const entryPoints: Record<string, string> = {
  api: 'oarlock/api',
  'controllers/managed': 'oarlock/managed',
  kubernetes: 'oarlock/kubernetes',
  'kubernetes/client': 'oarlock/client',
  'kubernetes/controller': 'oarlock/controller',
}
const root = join(import.meta.dirname, '..')
const providers = join(root, 'examples', 'providers')
const names = readdirSync(providers)
const [name = '', directory = ''] = process.argv.slice(2)
if (!names.includes(name) || directory === '') {
  process.stderr.write(`Usage: node examples/copy-provider.ts ${names.join('|')} DIRECTORY\n`)
  process.exit(2)
}
if (existsSync(directory)) {
  process.stderr.write(`copy-provider: ${directory} exists; name a new directory\n`)
  process.exit(1)
}
cpSync(join(providers, name), directory, { recursive: true })
for (const file of globSync('**/*.ts', { cwd: directory })) {
  const path = join(directory, file)
  const text = readFileSync(path, 'utf8').replaceAll(/'(?:\.\.\/)+src\/([\w/]+)\/index\.ts'/g, (found, module: string) => {
    const entryPoint = entryPoints[module]
    if (entryPoint === undefined) throw new Error(`${file} imports ${found}, which is not published`)
    return `'${entryPoint}'`
  })
  writeFileSync(path, text.replaceAll(`examples/providers/${name}/`, ''))
}
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const manifest = join(directory, 'package.json')
writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"oarlock": "*"', `"oarlock": "^${version}"`))
process.stdout.write(`copied to ${resolve(directory)}; next: npm install && node provider.ts --help\n`)
