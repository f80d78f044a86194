import type { Report } from './stats.ts'

const barWidth = 24

/** One line of progress: redrawn in a terminal, otherwise printed every 5 s. */
export class Progress {
  readonly #total: number
  readonly #startedAt: number
  readonly #serverRssMb: () => number
  #timer: NodeJS.Timeout | undefined
  #writes = 0
  #atMs = 0

  constructor(total: number, startedAt: number, serverRssMb: () => number) {
    this.#total = total
    this.#startedAt = startedAt
    this.#serverRssMb = serverRssMb
  }

  follow(read: () => Report | undefined): void {
    const isTerminal = process.stderr.isTTY
    const show = () => {
      const report = read()
      if (!report) return
      const line = this.#line(report)
      process.stderr.write(isTerminal ? `\r${line}\x1b[K` : `${line}\n`)
    }
    this.#timer = setInterval(show, isTerminal ? 500 : 5_000)
  }

  stop(): void {
    clearInterval(this.#timer)
    if (process.stderr.isTTY) process.stderr.write('\n')
  }

  #line(report: Report): string {
    const nowMs = Date.now()
    const writes = report.creates + report.componentStatusWrites + report.kymaStatusWrites
    const perSecond = this.#atMs ? ((writes - this.#writes) / (nowMs - this.#atMs)) * 1_000 : 0
    this.#writes = writes
    this.#atMs = nowMs
    const filled = Math.round((report.succeeded / this.#total) * barWidth)
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled)
    const seconds = String(Math.round((nowMs - this.#startedAt) / 1_000)).padStart(4)
    const server = this.#serverRssMb()
    return (
      `${seconds} s ${bar} ${report.succeeded}/${this.#total} success  ${report.components} components  ` +
      `${Math.max(0, Math.round(perSecond))} writes/s  queue ${report.queueDepth}  ` +
      `RSS operator ${Math.round(report.rssMb)} MB${Number.isNaN(server) ? '' : `, server ${Math.round(server)} MB`}`
    )
  }
}
