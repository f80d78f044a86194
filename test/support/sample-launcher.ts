import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { terraformEngine } from './run-program.ts'

const root = join(import.meta.dirname, '..', '..')
let launcher: string | undefined

/** The launcher whose `up --sample` can run on this machine: of the checkout with Terraform, of a copy of it with OpenTofu. */
export function sampleLauncher(): string {
  launcher ??= terraformEngine === 'terraform' ? join(root, 'bin', 'oarlock.js') : copyWithOpenTofu()
  return launcher
}

/** Copies the checkout and replaces the engine of the samples, as examples/stacks/README.md describes. Returns the launcher of the copy. */
function copyWithOpenTofu(): string {
  const copy = mkdtempSync(join(tmpdir(), 'oarlock-opentofu-'))
  process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
  for (const name of ['bin', 'src', 'examples', 'package.json']) cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  const samples = join(copy, 'examples', 'stacks')
  for (const name of readdirSync(samples).filter(name => name.endsWith('.yaml'))) {
    const text = readFileSync(join(samples, name), 'utf8')
    writeFileSync(join(samples, name), text.replaceAll('engine: terraform', 'engine: opentofu'))
  }
  return join(copy, 'bin', 'oarlock.js')
}
