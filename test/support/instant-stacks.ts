import { outputsSecretName, outputsSecretType, type Stack, stackResource } from '../../src/api/index.ts'
import { type Client, secretResource } from '../../src/kubernetes/client/index.ts'
import { isReason, setCondition } from '../../src/kubernetes/object/index.ts'

/** In place of controllers and workers, for tests of what others do with Stacks: each generation has a Run for a moment, and is Ready with one output. */
export class InstantStacks {
  readonly #client: Client
  readonly #output: unknown
  #isStopped = false
  #loop: Promise<void> | undefined

  constructor(client: Client, output: unknown) {
    this.#client = client
    this.#output = output
  }

  start(): void {
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const { items } = await this.#client.resource(stackResource).listAll({})
      for (const stack of items) {
        if (stack.status?.observedGeneration !== stack.metadata.generation) await this.#apply(stack).catch(ignoreDeleted)
      }
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }

  async #apply({ metadata, status }: Stack): Promise<void> {
    const { name, namespace, generation = 1 } = metadata
    const lastRun = (phase: string) => ({ name: `${name}-${generation}`, type: 'Apply', phase, reason: 'NewGeneration' })
    const stacks = this.#client.resource(stackResource)
    const write = (fields: object) => stacks.patchStatus(name, { status: fields }, { namespace })
    await write({ lastRun: lastRun('Applying') })
    await new Promise(resolve => setTimeout(resolve, 500))
    const data = { file: Buffer.from(JSON.stringify(this.#output)).toString('base64') }
    await this.#client
      .resource(secretResource)
      .apply({ metadata: { name: outputsSecretName(name), namespace }, type: outputsSecretType, data }, { force: true })
    const conditions = setCondition(status?.conditions, { type: 'Ready', status: 'True', reason: 'Applied', message: '' }, Date.now())
    await write({ observedGeneration: generation, conditions, lastRun: lastRun('Succeeded'), outputsDigest: 'a'.repeat(64) })
  }
}

function ignoreDeleted(error: unknown): void {
  if (!isReason(error, 'NotFound')) throw error
}
