/** Cost of importing the library: RSS of a process that imports it minus that of one that does not. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Bench } from './run.ts'

const modules = ['controller', 'client'].map(module => join(import.meta.dirname, '..', 'src', 'kubernetes', module, 'index.ts'))
const repeats = 7

export async function bench(): Promise<Bench> {
  const measure = (code: string) => {
    const figures = Array.from({ length: repeats }, () => {
      const text = execFileSync(
        process.execPath,
        ['--input-type=module', '-e', `${code}; console.log(JSON.stringify([process.memoryUsage.rss() / 1e6, performance.now()]))`],
        {
          encoding: 'utf8',
          env: { ...process.env, NODE_COMPILE_CACHE: 'node_modules/.cache/node' },
        },
      )
      return JSON.parse(text) as [number, number]
    })
    const middle = (index: 0 | 1) => figures.map(figure => figure[index]).sort((a, b) => a - b)[Math.floor(repeats / 2)] as number
    return { rssMb: middle(0), ms: middle(1) }
  }
  const bare = measure('')
  const rows = [
    { what: 'bare Node', ...bare },
    { what: 'import of controller + client', ...measure(modules.map(module => `await import(${JSON.stringify(module)})`).join(';')) },
    {
      what: 'import, and a client that sent a request',
      ...measure(
        `const { createClient } = await import(${JSON.stringify(modules[1])}); await import(${JSON.stringify(modules[0])}); const client = await createClient({ cluster: { server: 'http://127.0.0.1:1' } }); await client.request({ method: 'GET', path: '/' }).catch(() => undefined); await client.close()`,
      ),
    },
  ].map(({ what, rssMb, ms }) => ({ what, 'RSS MB': rssMb, 'over bare MB': rssMb - bare.rssMb, 'ms to here': ms }))
  return { title: 'Import', about: `Median of ${repeats} processes each, compile cache warm (types are stripped once).`, rows }
}
