import type { ProgressAction, ProgressState } from './progress-state.ts'
import { TaskProgress } from './task-progress.ts'

/** More are not followed: `Run.status.progress` counts all of them. */
const maxItems = 10_000

const verbs: Readonly<Record<string, ProgressAction>> = {
  creat: 'create',
  modif: 'update',
  modify: 'update',
  updat: 'update',
  destroy: 'delete',
  destruct: 'delete',
  delet: 'delete',
  replac: 'replace',
  read: 'read',
}

/** OpenTofu and Terraform: `ADDRESS: Creating...`, `ADDRESS: Creation complete after 1s [id=…]`, `ADDRESS: Plan to create`. */
const terraformLine =
  /^(\S.*?): (?:Plan to (create|update|delete|replace)\b|(Creat|Modify|Destroy|Read)ing\.\.\.|(Creation|Modifications|Destruction|Read) (complete|errored) after (\S+))/
/** Pulumi: ` +  TYPE NAME creating (1s)`, ` +  TYPE NAME created (1s)`, ` +  TYPE NAME **creating failed**`. */
const pulumiLine = /^ *[+~\-<>=/]+ {1,2}(\S+ \S+) (\*\*)?(creat|updat|delet|replac)(ing|ed)(?: failed\*\*)?(?: \((\S+)\))?/
/** Manifests: `applied KIND NAMESPACE/NAME`, `deleting KIND NAMESPACE/NAME`. */
const manifestLine = /^(applied|deleting) ([A-Z]\w* \S+)/

type Change = Omit<ProgressState, 'line' | 'startedMs'>

/** Follows resources and tasks by the lines that engines print about them. What a program prints in the same form is taken for the engine's: this only shows progress. */
export class ResourceProgress {
  readonly #items = new Map<string, ProgressState>()
  readonly #tasks = new TaskProgress()
  #hasTasks = false

  get items(): ReadonlyMap<string, ProgressState> {
    return this.#items
  }

  /** What the items are. */
  get noun(): 'resource' | 'task' {
    return this.#hasTasks ? 'task' : 'resource'
  }

  /** @param timeMs undefined: the log has no times. */
  add(text: string, line: number, timeMs: number | undefined): void {
    const tasks = this.#tasks.add(text, line, timeMs)
    if (tasks) {
      this.#hasTasks ||= tasks.length > 0
      for (const [key, state] of tasks) this.#set(key, state)
      return
    }
    const change = readChange(text)
    if (!change) return
    const known = this.#items.get(change.name)
    const startedMs = change.state === 'running' && known?.state !== 'running' ? timeMs : known?.startedMs
    // What is planned to be replaced is deleted and created.
    const action = known?.action === 'replace' ? 'replace' : change.action
    this.#set(change.name, { ...change, action, line, ...(startedMs !== undefined && { startedMs }) })
  }

  #set(key: string, state: ProgressState): void {
    if (this.#items.has(key) || this.#items.size < maxItems) this.#items.set(key, state)
  }
}

function readChange(text: string): Change | undefined {
  const terraform = terraformLine.exec(text)
  if (terraform) {
    const [, name = '', planned, running, ended, result, duration] = terraform
    if (planned) return { name, action: planned as ProgressAction, state: 'planned' }
    if (running) return { name, action: actionOf(running), state: 'running' }
    return { name, action: actionOf(ended ?? ''), state: result === 'complete' ? 'done' : 'failed', ...durationOf(duration) }
  }
  const pulumi = pulumiLine.exec(text)
  if (pulumi) {
    const [, name = '', failed, verb = '', ending, duration] = pulumi
    const state = failed ? 'failed' : ending === 'ed' ? 'done' : 'running'
    return { name, action: actionOf(verb), state, ...(state === 'done' && durationOf(duration)) }
  }
  const [, verb, name] = manifestLine.exec(text) ?? []
  if (name === undefined) return undefined
  return verb === 'applied' ? { name, action: 'update', state: 'done' } : { name, action: 'delete', state: 'running' }
}

function actionOf(word: string): ProgressAction {
  const lower = word.toLowerCase()
  return Object.entries(verbs).find(([start]) => lower.startsWith(start))?.[1] ?? 'update'
}

/** `1s`, `0.05s`, `2m10s`. */
function durationOf(text: string | undefined): { readonly durationMs?: number } {
  const parts = [...(text ?? '').matchAll(/([\d.]+)(h|ms|m|s)/g)]
  if (parts.length === 0) return {}
  const unitMs = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const
  return { durationMs: parts.reduce((sum, [, value, unit]) => sum + Number(value) * unitMs[unit as keyof typeof unitMs], 0) }
}
