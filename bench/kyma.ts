/** The Kyma experiment as a bench: `npm run bench -- kyma --kymas 4000`; other options are those of `npm run kyma`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bench } from './run.ts'

export async function bench(args: string[]): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-kyma-'))
  const file = join(directory, 'summary.json')
  // Not passed on: the name of the bench, and --json with its file.
  const own = args.indexOf('--json')
  const passed = args.filter((arg, index) => arg !== 'kyma' && (own < 0 || (index !== own && index !== own + 1)))
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'examples', 'kyma', 'run.ts'), ...passed, '--json', file], {
      stdio: 'inherit',
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`the experiment exited with code ${code}`)
    const summary = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string | number>
    return {
      title: 'Kyma experiment',
      about: `${summary.kymas} Kymas of 18 components; options: ${passed.join(' ') || 'none'}.`,
      rows: [summary],
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
