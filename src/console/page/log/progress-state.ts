/** What is done to a resource; `run`, `change` and `skip` are of tasks. */
export type ProgressAction = 'create' | 'update' | 'delete' | 'replace' | 'read' | 'run' | 'change' | 'skip'

/** What the log of an engine shows of one resource or task. */
export type ProgressState = {
  readonly name: string
  readonly action: ProgressAction
  readonly state: 'planned' | 'running' | 'done' | 'failed'
  /** Index of the line that showed it. */
  readonly line: number
  /** When it was started, where the log has times. */
  readonly startedMs?: number
  readonly durationMs?: number
}
