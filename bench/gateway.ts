/**
 * The gateway (issue 18): `npm run bench -- gateway --what latency|list|watch|select|faults|simulation|workers`. `latency`: `--rounds 9 --seconds 5 --load 30` (% of the direct maximum). `list`: `--objects 10000 --rounds 9`.
 * `watch`: `--order-rate 2000 --rate 500 --clients 100 --seconds 10`. `select`: `--clients 5000 --events 50000`. `faults`: `--times 100 --seed 1`. `simulation`: `--seeds 10000`. `workers`: `--workers 2500 --rate 20 --load 70` (% of the slots).
 */
import { parseArgs } from 'node:util'
import type { Bench } from './run.ts'

export async function bench(args: string[]): Promise<Bench> {
  const text = { type: 'string' } as const
  const names = [
    'rounds',
    'seconds',
    'objects',
    'order-rate',
    'rate',
    'clients',
    'events',
    'times',
    'seed',
    'seeds',
    'load',
    'workers',
  ] as const
  const options = { what: text, ...Object.fromEntries(names.map(name => [name, text])) }
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  const number = (name: (typeof names)[number], byDefault: number) => {
    const value = Number(values[name] ?? byDefault)
    if (!(value > 0)) throw new RangeError(`--${name} must be a number > 0, got ${JSON.stringify(values[name])}`)
    return value
  }
  switch (values.what) {
    case 'latency':
      return await (await import('./gateway/latency.ts')).latency({
        ...{ rounds: number('rounds', 9), seconds: number('seconds', 5), load: number('load', 30) / 100 },
      })
    case 'list':
      return await (await import('./gateway/list.ts')).list({ objects: number('objects', 10_000), rounds: number('rounds', 9) })
    case 'watch': {
      const rates = { orderPerSecond: number('order-rate', 2_000), perSecond: number('rate', 500) }
      return await (await import('./gateway/watch.ts')).watch({ ...rates, clients: number('clients', 100), seconds: number('seconds', 10) })
    }
    case 'select':
      return await (await import('./gateway/select.ts')).select({ clients: number('clients', 5_000), events: number('events', 50_000) })
    case 'faults':
      return await (await import('./gateway/faults.ts')).faults({ times: number('times', 100), seed: number('seed', 1) })
    case 'simulation':
      return await (await import('./gateway/simulation.ts')).simulation({ seeds: number('seeds', 10_000) })
    case 'workers':
      return await (await import('./gateway/workers.ts')).workers({
        ...{ count: number('workers', 2_500), perSecond: number('rate', 20), load: number('load', 70) / 100 },
      })
    default:
      throw new TypeError(`--what must be latency, list, watch, select, faults, simulation or workers, got ${JSON.stringify(values.what)}`)
  }
}
