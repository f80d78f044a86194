import type { ProgressState } from './progress-state.ts'

/** `TASK [NAME] ****`, `RUNNING HANDLER [NAME] ****`, `PLAY [NAME] ****`, `PLAY RECAP ****`: of the callback `default`. */
const header = /^(?:(?:TASK|RUNNING HANDLER) \[(.*)\]|(PLAY) \[(.*)\]|PLAY RECAP) \*+$/
/** `changed: [HOST]`, `failed: [HOST] (item=a) => {…`, `fatal: [HOST]: UNREACHABLE! => {…`. */
const result = /^(ok|changed|skipping|failed|fatal|included): \[([^\]\s]*)/
/** After the failure of a host, or of all items of a loop, in a task with ignore_errors. */
const ignored = '...ignoring'

/** A log may have lines of any length, and any number of tasks. */
const maxNameLength = 300
const maxNames = 10_000

type Task = {
  readonly key: string
  readonly state: ProgressState
  /** Hosts whose failure was not ignored. */
  readonly failed: Set<string>
  readonly lastFailed: string
  readonly hasRun: boolean
}

/** Follows the tasks of Ansible by the lines that it prints. In check mode, before the phase Applying, only the tasks that would change something are listed: as planned. */
export class TaskProgress {
  #isApplying = false
  #play = ''
  /** How many tasks of this name have begun in plays of this name, since the check or the apply began. */
  #begun = new Map<string, number>()
  #task: Task | undefined

  /**
   * @param timeMs undefined: the log has no times.
   * @returns the states that the line changes, by a key of each task; undefined for a line that is not about a task.
   */
  add(text: string, line: number, timeMs: number | undefined): readonly (readonly [key: string, state: ProgressState])[] | undefined {
    if (text === 'Applying') {
      this.#isApplying = true
      this.#begun = new Map()
    }
    const found = header.exec(text)
    if (found) {
      const ended = this.#end(timeMs)
      this.#task = undefined
      const [, name, isPlay, play = ''] = found
      if (isPlay) this.#play = play.slice(0, maxNameLength)
      return name === undefined ? ended : [...ended, ...this.#begin(name.slice(0, maxNameLength), line, timeMs)]
    }
    if (!this.#task) return undefined
    if (text === ignored) return this.#report(ignored, this.#task.lastFailed)
    const [, outcome, host = ''] = result.exec(text) ?? []
    return outcome === undefined ? undefined : this.#report(outcome, host)
  }

  #begin(name: string, line: number, timeMs: number | undefined) {
    const task = `${this.#play}\n${name}`
    const count = (this.#begun.get(task) ?? 0) + 1
    if (this.#begun.size < maxNames) this.#begun.set(task, count)
    const state: ProgressState = {
      ...{ name: count === 1 ? name : `${name} (${count})`, action: 'run', state: 'running', line },
      ...(timeMs !== undefined && { startedMs: timeMs }),
    }
    this.#task = { key: `${task}\n${count}`, state, failed: new Set(), lastFailed: '', hasRun: false }
    return this.#isApplying ? [[this.#task.key, state] as const] : []
  }

  #report(outcome: string, host: string) {
    const task = this.#task as Task
    const isFailure = outcome === 'failed' || outcome === 'fatal'
    const { failed } = task
    if (isFailure && failed.size < maxNames) failed.add(host)
    if (outcome === ignored) failed.delete(host)
    const state: ProgressState = {
      ...task.state,
      action: outcome === 'changed' ? 'change' : task.state.action,
      state: failed.size > 0 ? 'failed' : 'running',
    }
    const hasRun = task.hasRun || outcome !== 'skipping'
    this.#task = { ...task, state, hasRun, lastFailed: isFailure ? host : task.lastFailed }
    if (this.#isApplying) return [[task.key, state] as const]
    return state.action === 'change' ? [[task.key, { ...state, state: 'planned' }] as const] : []
  }

  /** A task ends where another one, or the play, begins or ends. */
  #end(timeMs: number | undefined) {
    const task = this.#task
    if (!task || !this.#isApplying) return []
    const { state, hasRun } = task
    const ended: ProgressState = {
      ...state,
      action: hasRun ? state.action : 'skip',
      state: state.state === 'running' ? 'done' : state.state,
      ...(timeMs !== undefined && state.startedMs !== undefined && { durationMs: timeMs - state.startedMs }),
    }
    return [[task.key, ended] as const]
  }
}
