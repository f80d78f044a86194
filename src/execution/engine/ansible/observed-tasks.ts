import { isJsonObject } from '../../../kubernetes/object/index.ts'
import { parseJson } from './json-line.ts'

/** Of changes and failures of one command: a playbook can have any number. */
const maxListed = 10_000
const maxNamed = 3
/** More than the most `forks` allow. */
const maxRunning = 300

export type TaskOnHost = { readonly host: string; readonly task: string }
export type TaskFailure = TaskOnHost & { readonly reason: string; readonly isUnreachable: boolean }
export type TaskProgress = { done: number; total: number; current?: string; running: readonly string[] }

const recapFields = ['ok', 'changed', 'failures', 'unreachable', 'skipped', 'rescued', 'ignored'] as const
/** Numbers of tasks. */
export type Recap = Record<(typeof recapFields)[number], number>

const emptyRecap = (): Recap => ({ ok: 0, changed: 0, failures: 0, unreachable: 0, skipped: 0, rescued: 0, ignored: 0 })

function addRecap(sum: Recap, counts: Readonly<Record<string, unknown>>): void {
  for (const field of recapFields) sum[field] += typeof counts[field] === 'number' ? counts[field] : 0
}

/** What the callback plugin of one command has reported. Bounded; a line that it does not understand is ignored. */
export class ObservedTasks {
  readonly changed: TaskOnHost[] = []
  readonly failures: TaskFailure[] = []
  /** By host; of several playbooks the sum. */
  readonly hosts = new Map<string, Recap>()
  /** Of failures, with those that are not listed. */
  failureCount = 0
  changeCount = 0
  hasStarted = false
  /** A host executes one task at a time. */
  readonly #running = new Map<string, string>()
  #done = 0
  #total = 0
  #current: string | undefined

  get running(): readonly TaskOnHost[] {
    return [...this.#running].map(([host, task]) => ({ host, task }))
  }

  /** @returns the progress, if the line changes it. */
  add(line: string): TaskProgress | undefined {
    const event = parseJson(line)
    if (!isJsonObject(event)) return undefined
    const host = text(event.host)
    const task = text(event.task)
    switch (event.event) {
      case 'start':
        this.#total += typeof event.total === 'number' ? event.total : 0
        return this.#progress()
      case 'task':
        this.hasStarted = true
        if (this.#current !== undefined) this.#done++
        this.#current = task
        return this.#progress()
      case 'running':
        if (this.#running.size < maxRunning) this.#running.set(host, task)
        return this.#progress()
      case 'ok':
      case 'skipped':
      case 'failed':
      case 'unreachable': {
        this.#running.delete(host)
        if (event.changed === true) {
          this.changeCount++
          if (this.changed.length < maxListed) this.changed.push({ host, task })
        }
        const isFailure = event.event === 'failed' || event.event === 'unreachable'
        if (isFailure && event.ignored !== true) {
          this.failureCount++
          const isUnreachable = event.event === 'unreachable'
          if (this.failures.length < maxListed) this.failures.push({ host, task, reason: text(event.reason), isUnreachable })
        }
        return this.#progress()
      }
      case 'recap':
        this.#addRecap(event.hosts)
        return undefined
      default:
        return undefined
    }
  }

  #addRecap(hosts: unknown): void {
    if (!isJsonObject(hosts)) return
    for (const [host, counts] of Object.entries(hosts)) {
      if (!isJsonObject(counts)) continue
      const sum = this.hosts.get(host) ?? emptyRecap()
      addRecap(sum, counts)
      this.hosts.set(host, sum)
    }
  }

  #progress(): TaskProgress {
    const running = this.running.map(formatTask)
    const total = Math.max(this.#total, this.#done + 1)
    return { done: this.#done, total, ...(this.#current !== undefined && { current: this.#current.slice(0, 200) }), running }
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** `web1: Install the package` */
export const formatTask = ({ host, task }: TaskOnHost): string => `${host}: ${task}`

/** `task "Install" failed on web1: no such package; and 2 more`, for an error message; empty without failures. */
export function formatFailures({ failures, failureCount }: Pick<ObservedTasks, 'failures' | 'failureCount'>): string {
  const named = failures.slice(0, maxNamed).map(({ host, task, reason, isUnreachable }) =>
    // What Ansible says of a host already has this word.
    isUnreachable ? `host ${host} is unreachable in task "${task}": ${reason}` : `task "${task}" failed on ${host}: ${reason}`,
  )
  const more = failureCount > named.length ? `; and ${failureCount - named.length} more` : ''
  return `${named.map(each => each.replaceAll(/\s+/g, ' ').trim()).join('; ')}${more}`
}

/** `web1: ok=3 changed=1 failed=0 unreachable=0 skipped=0`, each host of up to five, otherwise their sum. */
export function formatRecap(hosts: ReadonlyMap<string, Recap>): string {
  const format = (each: Recap) =>
    `ok=${each.ok} changed=${each.changed} failed=${each.failures} unreachable=${each.unreachable} skipped=${each.skipped}`
  if (hosts.size <= 5) return [...hosts].map(([host, each]) => `${host}: ${format(each)}`).join(', ')
  const sum = emptyRecap()
  for (const each of hosts.values()) addRecap(sum, each)
  return `${hosts.size} hosts: ${format(sum)}`
}

/** The names of tasks with their hosts: `"Write the time" (web1, web2), …`. */
export function formatTasks(tasks: readonly TaskOnHost[]): string {
  const hosts = new Map<string, string[]>()
  for (const { host, task } of tasks) hosts.set(task, [...(hosts.get(task) ?? []), host])
  const named = [...hosts].slice(0, maxNamed).map(([task, on]) => {
    const more = on.length > maxNamed ? ` and ${on.length - maxNamed} more` : ''
    return `"${task}" (${on.slice(0, maxNamed).join(', ')}${more})`
  })
  return `${named.join(', ')}${hosts.size > named.length ? ` and ${hosts.size - named.length} more` : ''}`
}
