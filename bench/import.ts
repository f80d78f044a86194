/** What importing the library costs: RSS of a process that did, over one that did not. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Bench } from './run.ts'

const rooms = ['controller', 'client'].map(room => join(import.meta.dirname, '..', 'src', 'kubernetes', room, 'index.ts'))
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
    { what: 'import of controller + client', ...measure(rooms.map(room => `await import(${JSON.stringify(room)})`).join(';')) },
    {
      what: 'import, and a client that sent a request',
      ...measure(
        `const { createClient } = await import(${JSON.stringify(rooms[1])}); await import(${JSON.stringify(rooms[0])}); const client = await createClient({ cluster: { server: 'http://127.0.0.1:1' } }); await client.request({ method: 'GET', path: '/' }).catch(() => undefined); await client.close()`,
      ),
    },
  ].map(({ what, rssMb, ms }) => ({ what, 'RSS MB': rssMb, 'over bare MB': rssMb - bare.rssMb, 'ms to here': ms }))
  return { title: 'Import', about: `Median of ${repeats} processes each, compile cache warm (types are stripped once).`, rows }
}
