import type { ProgressState } from './progress-state.ts'

/** `TASK [NAME] ****`, `RUNNING HANDLER [NAME] ****`, `PLAY [NAME] ****`, `PLAY RECAP ****`: of the callback `default`. */
const header = /^(?:(?:TASK|RUNNING HANDLER) \[(.*)\]|(PLAY) \[(.*)\]|PLAY RECAP) \*+$/
/** `changed: [HOST]`, `failed: [HOST] (item=a) => {…`, `fatal: [HOST]: UNREACHABLE! => {…`. */
const result = /^(ok|changed|skipping|failed|fatal|included): \[/
/** After a failure of a task with ignore_errors. */
const ignored = '...ignoring'

/** A log may have lines of any length, and any number of tasks. */
const maxNameLength = 300
const maxNames = 10_000

type Task = {
  readonly key: string
  readonly state: ProgressState
  /** What its failures were before the last one, which may be ignored. */
  readonly hasFailedBefore: boolean
  readonly hasRun: boolean
}

/** Follows the tasks of Ansible by the lines that it prints. In check mode, before the phase Applying, only the tasks that would change something are listed: as planned. */
export class TaskProgress {
  #isApplying = false
  #play = ''
  /** Of the present play: how many tasks of a name have begun. */
  #begun = new Map<string, number>()
  #task: Task | undefined

  /**
   * @param timeMs undefined: the log has no times.
   * @returns the states that the line changes, by a key of each task; undefined for a line that is not about a task.
   */
  add(text: string, line: number, timeMs: number | undefined): readonly (readonly [key: string, state: ProgressState])[] | undefined {
    if (text === 'Applying') this.#isApplying = true
    const found = header.exec(text)
    if (found) {
      const ended = this.#end(timeMs)
      this.#task = undefined
      const [, name, isPlay, play = ''] = found
      if (isPlay) {
        this.#play = play.slice(0, maxNameLength)
        this.#begun = new Map()
      }
      return name === undefined ? ended : [...ended, ...this.#begin(name.slice(0, maxNameLength), line, timeMs)]
    }
    const outcome = this.#task && (result.exec(text)?.[1] ?? (text === ignored ? ignored : undefined))
    return outcome === undefined ? undefined : this.#report(outcome)
  }

  #begin(name: string, line: number, timeMs: number | undefined) {
    const count = (this.#begun.get(name) ?? 0) + 1
    if (this.#begun.size < maxNames) this.#begun.set(name, count)
    const state: ProgressState = {
      ...{ name: count === 1 ? name : `${name} (${count})`, action: 'run', state: 'running', line },
      ...(timeMs !== undefined && { startedMs: timeMs }),
    }
    this.#task = { key: `${this.#play}\n${name}\n${count}`, state, hasFailedBefore: false, hasRun: false }
    return this.#isApplying ? [[this.#task.key, state] as const] : []
  }

  #report(outcome: string) {
    const task = this.#task as Task
    const { state, hasFailedBefore } = task
    const isFailure = outcome === 'failed' || outcome === 'fatal'
    const next: ProgressState = {
      ...state,
      action: outcome === 'changed' ? 'change' : state.action,
      state: isFailure ? 'failed' : outcome === ignored && !hasFailedBefore ? 'running' : state.state,
    }
    this.#task = {
      ...task,
      state: next,
      hasFailedBefore: isFailure ? state.state === 'failed' : hasFailedBefore,
      hasRun: task.hasRun || outcome !== 'skipping',
    }
    if (this.#isApplying) return [[task.key, next] as const]
    return next.action === 'change' ? [[task.key, { ...next, state: 'planned' }] as const] : []
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
