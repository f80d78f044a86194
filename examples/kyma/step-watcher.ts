import type { Client } from '../../src/kubernetes/client/index.ts'
import { listWatch } from '../../src/kubernetes/client/index.ts'
import { componentResource, componentSteps } from './kinds.ts'

/**
 * Independent verification: follows every HelmComponent with its own watch and counts skipped steps and components that were created
 * twice (the same name with another UID).
 */
export class StepWatcher {
  steps = 0
  skipped = 0
  madeTwice = 0
  readonly #last = new Map<string, { uid: string; step: number }>()
  readonly #end = new AbortController()
  readonly #ready = Promise.withResolvers<void>()
  readonly #run: Promise<void>

  constructor(client: Client, namespace: string) {
    this.#run = listWatch(client, componentResource, {
      namespace,
      signal: this.#end.signal,
      onReplace: items => {
        for (const item of items) this.#see(item.metadata.name, item.metadata.uid, item.status?.status)
        this.#ready.resolve()
      },
      onEvent: ({ type, object }) => {
        if (type === 'ADDED' || type === 'MODIFIED') this.#see(object.metadata.name, object.metadata.uid, object.status?.status)
        if (type === 'DELETED') this.#last.delete(object.metadata.name)
      },
      onError: error => console.error(`the witness lost its watch: ${(error as Error).message}`),
    })
  }

  get whenReady(): Promise<void> {
    return this.#ready.promise
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#run
  }

  #see(name: string, uid: string, status: string | undefined): void {
    const step = status === undefined ? -1 : componentSteps.indexOf(status as (typeof componentSteps)[number])
    const last = this.#last.get(name)
    if (last && last.uid !== uid) this.madeTwice++
    const from = last?.step ?? -1
    if (step > from) this.steps++
    if (step > from + 1 || step < from) this.skipped++
    this.#last.set(name, { uid, step })
  }
}
