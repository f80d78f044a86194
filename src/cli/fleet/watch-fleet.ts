import type { Run, Stack } from '../../api/index.ts'
import type { Informer } from '../../kubernetes/controller/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import { LiveScreen } from '../output/live-screen.ts'
import type { Paint } from '../output/style.ts'
import { changeLines, type FleetRow, fleetRows, renderFleet } from './fleet-view.ts'

export type FleetWatchOptions = {
  stacks: Informer<Pick<Stack, 'spec' | 'status'>>
  runs: Informer<Pick<Run, 'spec' | 'status'>>
  /** Keys of the Stacks to show and to wait for. Undefined: all Stacks. */
  keys: ReadonlySet<string> | undefined
  stream: NodeJS.WriteStream
  paint: Paint
  startedMs: number
  nowMs?: () => number
}

const frameMs = 120
/** Changes within this time are shown together. */
const debounceMs = 30

/** Shows the progress of a fleet: as a live table in a terminal, otherwise as one line for each change. */
export class FleetWatch {
  readonly #options: FleetWatchOptions
  readonly #screen: LiveScreen | undefined
  readonly #settled = Promise.withResolvers<FleetRow[]>()
  #rows: FleetRow[] = []
  #frame = 0
  #timer: NodeJS.Timeout | undefined
  #pendingUpdate: NodeJS.Timeout | undefined
  #isSettled = false
  #firstReadyMs: number | undefined

  constructor(options: FleetWatchOptions) {
    this.#options = options
    if (options.stream.isTTY) this.#screen = new LiveScreen(options.stream)
  }

  start(): void {
    const schedule = () => {
      this.#pendingUpdate ??= setTimeout(() => {
        this.#pendingUpdate = undefined
        this.#update()
      }, debounceMs)
    }
    const handler = { added: schedule, updated: schedule, deleted: schedule }
    this.#options.stacks.onChange(handler)
    this.#options.runs.onChange(handler)
    if (this.#screen) this.#timer = setInterval(() => this.#update(), frameMs)
    this.#update()
  }

  /** Resolves when every Stack has its expected state, or is skipped on this machine. */
  get whenSettled(): Promise<FleetRow[]> {
    return this.#settled.promise
  }

  /** The current rows. */
  get rows(): readonly FleetRow[] {
    return this.#rows
  }

  /** Keys to wait for whose Stacks the cache does not have yet. */
  get missing(): string[] {
    const seen = new Set(this.#rows.map(({ key }) => key))
    return [...(this.#options.keys ?? [])].filter(key => !seen.has(key)).sort()
  }

  /** When the first Stack became Ready, in milliseconds since the start. */
  get firstReadyMs(): number | undefined {
    return this.#firstReadyMs
  }

  /** Ends the live table. Changes are printed as plain lines until `stop`. */
  freeze(): void {
    if (!this.#timer) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#draw()
    this.#screen?.end()
  }

  stop(): void {
    this.freeze()
    clearTimeout(this.#pendingUpdate)
    this.#pendingUpdate = setTimeout(() => {}, 0)
  }

  #update(): void {
    const { stacks, runs, keys, stream, nowMs = Date.now, startedMs } = this.#options
    const now = nowMs()
    const chosen = (stacks.list() as Stack[]).filter(stack => !keys || keys.has(objectKey(stack)))
    const before = this.#rows
    this.#rows = fleetRows(chosen, runs.list() as Run[], now)
    if (this.#firstReadyMs === undefined && this.#rows.some(({ state }) => state === 'Ready')) this.#firstReadyMs = now - startedMs
    if (this.#timer) this.#draw()
    else for (const line of changeLines(before, this.#rows)) stream.write(`${line}\n`)
    const isComplete = this.#rows.length > 0 && (!keys || this.#rows.length === keys.size)
    if (this.#isSettled || !isComplete || this.#rows.some(({ outcome }) => outcome.kind === 'pending')) return
    this.#isSettled = true
    this.#settled.resolve(this.#rows)
  }

  #draw(): void {
    const { stream, paint, startedMs, nowMs = Date.now } = this.#options
    const frame = {
      width: (stream.columns || 80) - 1,
      height: (stream.rows || 24) - 1,
      paint,
      frame: this.#frame++,
      elapsedMs: nowMs() - startedMs,
    }
    this.#screen?.draw(renderFleet(this.#rows, frame))
  }
}
