import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EndpointSettings } from './recording.ts'

/** What a scenario does with the CLI. */
export type ScenarioControl = {
  readonly directory: string
  /**
   * Runs a command of the CLI on `apps/<project>/dev`.
   * @param options.kill ends the CLI with SIGKILL at the given journal request, before it arrives or after it was stored.
   * @throws {Error} if its exit code is another one than expected; default 0, any with `kill`.
   */
  pulumi(
    args: readonly string[],
    options?: {
      readonly exitCode?: number
      readonly kill?: { readonly count: number; readonly when: 'before' | 'after'; readonly path?: RegExp }
    },
  ): Promise<string>
  /** The endpoint knows that the CLI has ended. */
  abandon(): Promise<void>
}

export type Scenario = {
  readonly name: string
  readonly program: 'yaml' | 'nodejs' | 'reference'
  readonly settings?: EndpointSettings
  /** Not recorded; what it leaves is the initial state of the conversation. */
  readonly prepare?: (control: ScenarioControl) => Promise<void>
  readonly run: (control: ScenarioControl) => Promise<void>
}

const up = ['up', '--yes', '--skip-preview']
const init = async ({ pulumi }: ScenarioControl) => void (await pulumi(['stack', 'init']))
const created = async (control: ScenarioControl) => {
  await init(control)
  await control.pulumi(up)
}

function expectText(text: string, pattern: RegExp): void {
  if (!pattern.test(text)) throw new Error(`the output does not match ${pattern}: ${text}`)
}

export const scenarios: readonly Scenario[] = [
  {
    name: 'up',
    program: 'yaml',
    run: async control => {
      await init(control)
      await control.pulumi(['up', '--yes'])
    },
  },
  { name: 'second-up', program: 'yaml', prepare: created, run: async ({ pulumi }) => void (await pulumi(up)) },
  {
    name: 'changes',
    program: 'nodejs',
    prepare: created,
    run: async ({ pulumi }) => {
      // Updates, then replacements.
      await pulumi(['config', 'set', 'size', '2'])
      await pulumi(up)
      await pulumi(['config', 'set', 'prefix', 'item'])
      await pulumi(up)
    },
  },
  { name: 'preview', program: 'yaml', prepare: created, run: async ({ pulumi }) => void (await pulumi(['preview'])) },
  {
    name: 'refresh',
    program: 'yaml',
    prepare: created,
    run: async ({ pulumi }) => void (await pulumi(['refresh', '--yes', '--skip-preview'])),
  },
  {
    name: 'destroy',
    program: 'yaml',
    prepare: created,
    run: async ({ pulumi }) => {
      await pulumi(['stack', 'rm', '--yes'], { exitCode: 1 })
      await pulumi(['destroy', '--yes'])
      await pulumi(['stack', 'rm', '--yes'])
    },
  },
  {
    name: 'kill-before-create',
    program: 'nodejs',
    prepare: init,
    run: async ({ pulumi, abandon }) => {
      // The second request has the first operation of the program.
      await pulumi(up, { kill: { count: 3, when: 'after' } })
      await abandon()
      await pulumi(['refresh', '--yes', '--skip-preview', '--clear-pending-creates'])
      await pulumi(up)
    },
  },
  {
    name: 'kill-after-create',
    program: 'nodejs',
    prepare: init,
    run: async ({ pulumi, abandon }) => {
      // The resource exists, its entry never arrives.
      await pulumi(up, { kill: { count: 5, when: 'before' } })
      await abandon()
      await pulumi(['refresh', '--yes', '--skip-preview', '--clear-pending-creates'])
      await pulumi(up)
    },
  },
  {
    name: 'kill-and-cancel',
    program: 'yaml',
    prepare: init,
    run: async ({ pulumi }) => {
      await pulumi(up, { kill: { count: 2, when: 'after' } })
      expectText(await pulumi(up, { exitCode: 1 }), /\[409\]/)
      await pulumi(['cancel', '--yes'])
      await pulumi(['refresh', '--yes', '--skip-preview', '--clear-pending-creates'])
      await pulumi(up)
    },
  },
  {
    name: 'fencing',
    program: 'nodejs',
    settings: { fencedFromAppend: 7 },
    prepare: init,
    run: async ({ pulumi }) => expectText(await pulumi(up, { exitCode: 3 }), /has the lock/),
  },
  {
    name: 'conflict',
    program: 'yaml',
    settings: { lockedBy: 'ada' },
    run: async control => {
      await init(control)
      expectText(await control.pulumi(up, { exitCode: 1 }), /\[409\].*locked by user ada/s)
    },
  },
  {
    name: 'too-large',
    program: 'nodejs',
    settings: { maxBatchEntries: 1 },
    run: async control => {
      await init(control)
      await control.pulumi(up)
      await control.pulumi(['destroy', '--yes', '--skip-preview'])
    },
  },
  {
    name: 'import-export',
    program: 'yaml',
    prepare: created,
    run: async ({ directory, pulumi }) => {
      const file = join(directory, 'state.json')
      await pulumi(['stack', 'export', '--file', file])
      await pulumi(['stack', 'import', '--file', file])
      await pulumi(['stack', 'export', '--version', '1', '--show-secrets'])
      await pulumi(['state', 'unprotect', '--all', '--yes'])
      writeFileSync(file, '{"version":3,"deployment":{"resources":5}}')
      await pulumi(['stack', 'import', '--file', file], { exitCode: 1 })
    },
  },
  {
    name: 'secrets',
    program: 'yaml',
    run: async control => {
      const { pulumi } = control
      await init(control)
      await pulumi(['config', 'set', '--secret', 'password', 'hunter2'])
      await pulumi(['config', 'set', '--secret', '--path', 'nested.key[0]', 'hunter3'])
      expectText(await pulumi(['config', 'get', 'password']), /hunter2/)
      await pulumi(['config', '--show-secrets'])
      await pulumi(up)
      expectText(await pulumi(['stack', 'output']), /\[secret\]/)
      await pulumi(['stack', 'output', '--show-secrets'])
      await pulumi(['config', 'refresh', '--force'])
    },
  },
  {
    name: 'stack-commands',
    program: 'yaml',
    prepare: created,
    run: async ({ pulumi }) => {
      await pulumi(['whoami', '--verbose'])
      await pulumi(['stack', 'ls', '--all'])
      await pulumi(['stack', 'history'])
      await pulumi(['stack', 'tag', 'set', 'team', 'web'])
      await pulumi(['stack', 'tag', 'ls'])
      await pulumi(['stack', 'rename', 'live'])
    },
  },
  {
    name: 'stack-reference',
    program: 'reference',
    run: async control => {
      await init(control)
      await control.pulumi(up)
      expectText(await control.pulumi(['stack', 'output']), /\[secret\]/)
    },
  },
  {
    name: 'checkpoints',
    program: 'nodejs',
    settings: { testedCliVersions: [] },
    run: async control => {
      await init(control)
      await control.pulumi(up)
    },
  },
  {
    name: 'checkpoints-kill',
    program: 'nodejs',
    settings: { testedCliVersions: [] },
    prepare: init,
    run: async ({ pulumi, abandon }) => {
      await pulumi(up, { kill: { count: 3, when: 'after', path: /\/checkpoint$/ } })
      await abandon()
      await pulumi(['refresh', '--yes', '--skip-preview', '--clear-pending-creates'])
    },
  },
  {
    name: 'delta-checkpoints',
    program: 'nodejs',
    settings: { testedCliVersions: [], deltaCutoffBytes: 1 },
    run: async control => {
      await init(control)
      await control.pulumi(up)
    },
  },
]
