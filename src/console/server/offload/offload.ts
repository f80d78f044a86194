import { type RunTask, type TaskCaller, TaskRunner } from './task-runner.ts'

/** The tasks of one request. */
export type CallTasks = {
  /** Calls `work` when the states may be read: see {@link TaskRunner.run}. @param bytes of all of them; Infinity if they are not known. */
  withStates<Value>(bytes: number, work: (run: RunTask) => Promise<Value>): Promise<Value>
  /** Tasks with the YAML of a Stack. */
  readonly yaml: RunTask
}

/** The processes of a console: two, so that no comparison of states delays who edits a Stack. Each runs only while there is something large. */
export class Offload {
  readonly #states = new TaskRunner({
    name: 'oarlock-console-states',
    // Two states of 16 MiB take 0.5 s and 130 MB, malicious ones more than both limits. Inline it is up to 5 ms, or 80 ms.
    ...{ timeoutMs: 5_000, maxHeapMb: 256, maxInlineSize: 128 * 1024 },
    ...{ subject: 'reading these versions of the state', remedy: 'use "oarlock state pull"' },
  })
  readonly #yaml = new TaskRunner({
    name: 'oarlock-console-yaml',
    // 256 KiB take 0.5 s, malicious ones 2 s. Inline it takes up to 5 ms, ten times that for malicious input.
    ...{ timeoutMs: 10_000, maxHeapMb: 256, maxInlineSize: 4 * 1024 },
    ...{ subject: 'processing this YAML', remedy: 'use kubectl' },
  })

  of(caller: TaskCaller): CallTasks {
    return {
      withStates: (bytes, work) => this.#states.run(caller, bytes, work),
      yaml: (name, ...args) => this.#yaml.run(caller, JSON.stringify(args).length, run => run(name, ...args)),
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#states.close(), this.#yaml.close()])
  }
}
