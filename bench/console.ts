/**
 * What open pages of the console cost: the CPU and memory of its server for each page, those of a page after an hour's worth of events, and of the page of a log with
 * 100,000 lines while it is scrolled. `--log`: only that. `--short`: a tenth of the time. Needs Debian's package chromium.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { runResource, stackResource } from '../src/api/index.ts'
import { launchChromium } from '../test/support/chromium.ts'
import type { ServerMessage } from './console/server.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'
import { cpuSecondsOf, privateMbOf, rssMbOf } from './server-process.ts'

const stacks = 10_000
const eventsPerSecond = 500
/** How many times faster an hour is replayed, events and what the server sends of them. */
const speed = 20
const logLines = 100_000

type Row = Record<string, string | number>

/** Every row has the same columns. */
const rowOf = (name: string, values: Partial<Record<Column, number>>): Row =>
  Object.fromEntries([['case', name], ...columns.map(column => [column, values[column] ?? ''] as const)])
const columns = [
  'server CPU %',
  'server RSS MB',
  'page CPU %',
  'JS heap MB',
  'page process MB',
  'frame work p95 ms',
  'frames > 50 ms %',
] as const
type Column = (typeof columns)[number]

export async function bench(args: string[]): Promise<Bench> {
  const scale = args.includes('--short') ? 0.1 : 1
  const browser = await launchChromium()
  try {
    const rows = args.includes('--log') ? [] : [...(await openPages(browser, scale)), ...(await replayedHour(browser, scale))]
    return {
      title: 'Open pages of the console',
      about: `${stacks.toLocaleString('en')} Stacks and 2,000 Runs, ${eventsPerSecond} changes of rows per second. CPU in % of a core. Memory of a page: its JavaScript after a garbage collection, and the private memory of its process.`,
      rows: [...rows, await logPage(browser)],
    }
  } finally {
    await browser.close()
  }
}

async function openPages(browser: Browser, scale: number): Promise<Row[]> {
  const rows: Row[] = []
  const server = await startServer(250)
  const pages: Page[] = []
  const measure = async (what: string) => {
    await sleep(3_000)
    const page = pages[0]
    const devtools = page && (await metricsOf(page))
    const [cpuBefore, taskBefore, startMs] = [cpuSecondsOf(server.pid), await devtools?.taskSeconds(), performance.now()]
    await sleep(20_000 * scale)
    const seconds = (performance.now() - startMs) / 1_000
    rows.push(
      rowOf(what, {
        'server CPU %': ((cpuSecondsOf(server.pid) - cpuBefore) / seconds) * 100,
        'server RSS MB': rssMbOf(server.pid),
        ...(devtools && {
          'page CPU %': (((await devtools.taskSeconds()) - (taskBefore as number)) / seconds) * 100,
          'JS heap MB': await devtools.heapMb(),
          'page process MB': await pageProcessMb(browser),
        }),
      }),
    )
    await devtools?.close()
  }
  try {
    await measure('no page')
    server.send({ kind: 'rate', eventsPerSecond })
    await measure('no page, events')
    for (const count of [1, 10]) {
      while (pages.length < count) pages.push(await openPage(browser, await server.link(), `${server.url}stacks`))
      await measure(`${count} ${count === 1 ? 'page' : 'pages of as many users'}, events`)
    }
    server.send({ kind: 'rate', eventsPerSecond: 0 })
    await measure('10 pages, no events')
    return rows
  } finally {
    for (const page of pages) await page.context().close()
    await server.close()
  }
}

/** The page shows Runs, which come and go, so that no row of the beginning is left. */
async function replayedHour(browser: Browser, scale: number): Promise<Row[]> {
  const server = await startServer(250 / speed)
  const page = await openPage(browser, await server.link(), `${server.url}runs`)
  try {
    const devtools = await metricsOf(page)
    const before = await devtools.heapMb()
    const [cpuBefore, taskBefore, startMs] = [cpuSecondsOf(server.pid), await devtools.taskSeconds(), performance.now()]
    server.send({ kind: 'rate', eventsPerSecond: eventsPerSecond * speed })
    await sleep((3_600_000 / speed) * scale)
    server.send({ kind: 'rate', eventsPerSecond: 0 })
    const seconds = (performance.now() - startMs) / 1_000
    const row = rowOf(
      `events of ${Math.round((seconds * speed) / 60)} minutes in ${Math.round(seconds)} s (JS heap before: ${before.toFixed(1)} MB)`,
      {
        'server CPU %': ((cpuSecondsOf(server.pid) - cpuBefore) / seconds) * 100,
        'server RSS MB': rssMbOf(server.pid),
        'page CPU %': (((await devtools.taskSeconds()) - taskBefore) / seconds) * 100,
        'JS heap MB': await devtools.heapMb(),
        'page process MB': await pageProcessMb(browser),
      },
    )
    return [row]
  } finally {
    await page.context().close()
    await server.close()
  }
}

/** A real Run prints the lines, and a user scrolls through them. */
async function logPage(browser: Browser): Promise<Row> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-log-'))
  const process_ = await up(dataDir)
  try {
    const { client } = process_
    const script = `seq -f 'aws_instance.web[%.0f]: Creating... with as much text as a line of a log usually has' 1 ${logLines}`
    await client.resource(stackResource).create({
      metadata: { namespace: 'default', name: 'log' },
      spec: { engine: 'command', command: { apply: ['sh', '-c', script] }, source: { inline: { files: { a: '1' } } } },
    })
    let name: string | undefined
    while (name === undefined) {
      await sleep(500)
      const { items } = await client.resource(runResource).list({ namespace: 'default' })
      name = items.find(({ status }) => status?.phase === 'Succeeded')?.metadata.name
    }
    const log = readFileSync(join(dataDir, 'oarlock.log'), 'utf8')
    const http = /"http":"([^"]+)"/.exec(log)?.[1]
    const url = `http://${http}/console/`
    const authorization = `Bearer ${readFileSync(join(dataDir, 'console-token'), 'utf8').trim()}`
    const links = await fetch(`${url}api/links`, { method: 'POST', headers: { authorization } })
    const { link } = (await links.json()) as { link: string }
    const page = await openPage(browser, `${url}#token=${link}`, url)
    const startMs = performance.now()
    await page.goto(`${url}runs/default/${name}`)
    await page.getByText(/^100,0\d\d lines$/).waitFor({ timeout: 60_000 })
    const shownMs = performance.now() - startMs
    const devtools = await metricsOf(page)
    await page.locator('.log').hover()
    const frames = page.evaluate(measureFrames) as Promise<{ workMs: number; intervalMs: number }[]>
    for (let step = 0; step < 200; step++) {
      await page.mouse.wheel(0, step % 10 === 9 ? 20_000 : 400)
      await sleep(16)
    }
    const found = await frames
    const works = found.map(({ workMs }) => workMs).sort((one, other) => one - other)
    const row = rowOf(`a log of ${logLines.toLocaleString('en')} lines, shown after ${Math.round(shownMs)} ms, scrolled`, {
      'server RSS MB': process_.rssMb(),
      'JS heap MB': await devtools.heapMb(),
      'page process MB': await pageProcessMb(browser),
      'frame work p95 ms': works[Math.floor(works.length * 0.95)] ?? 0,
      'frames > 50 ms %': (found.filter(({ intervalMs }) => intervalMs > 50).length / found.length) * 100,
    })
    await page.context().close()
    return row
  } finally {
    await process_.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Of 400 frames: the work of the main thread from the handlers of a scroll until layout and paint have ended, and the time since the frame before. */
const measureFrames = `new Promise(resolve => {
  const found = []
  const channel = new MessageChannel()
  let last = performance.now()
  let scrolledMs
  let beganMs
  let frameMs
  document.addEventListener('scroll', () => (scrolledMs ??= performance.now()), { capture: true })
  channel.port1.onmessage = () => {
    found.push({ workMs: performance.now() - beganMs, intervalMs: frameMs - last })
    last = frameMs
    scrolledMs = undefined
    if (found.length < 400) requestAnimationFrame(frame)
    else resolve(found)
  }
  const frame = nowMs => {
    frameMs = nowMs
    beganMs = scrolledMs ?? performance.now()
    channel.port2.postMessage(0)
  }
  requestAnimationFrame(frame)
})`

/** Private memory of the largest process of a page. */
async function pageProcessMb(browser: Browser): Promise<number> {
  const devtools = await browser.newBrowserCDPSession()
  const { processInfo } = await devtools.send('SystemInfo.getProcessInfo')
  await devtools.detach()
  return Math.max(...processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => privateMbOf(id)))
}

async function openPage(browser: Browser, link: string, url: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.goto(link)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.goto(url)
  await page.locator('main h1').first().waitFor()
  return page
}

async function metricsOf(page: Page) {
  const devtools: CDPSession = await page.context().newCDPSession(page)
  await devtools.send('Performance.enable')
  const read = async (name: string) => {
    const { metrics } = await devtools.send('Performance.getMetrics')
    return metrics.find(metric => metric.name === name)?.value ?? 0
  }
  return {
    taskSeconds: () => read('TaskDuration'),
    heapMb: async () => {
      await devtools.send('HeapProfiler.collectGarbage')
      return (await read('JSHeapUsedSize')) / 1e6
    },
    close: () => devtools.detach(),
  }
}

async function startServer(flushIntervalMs: number) {
  const child: ChildProcess = fork(join(import.meta.dirname, 'console', 'server.ts'), [String(stacks), String(flushIntervalMs)])
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  const send = (message: ServerMessage) => void child.send(message)
  return {
    url,
    pid: child.pid as number,
    send,
    async link() {
      send({ kind: 'link' })
      const [{ link }] = (await once(child, 'message')) as [{ link: string }]
      return link
    },
    async close() {
      child.disconnect()
      await once(child, 'exit')
    },
  }
}
