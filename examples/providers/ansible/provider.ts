/** The provider: `node examples/providers/ansible/provider.ts --help`. */

import { managed, runProvider } from '../../../src/controllers/managed/index.ts'
import type { Controller } from '../../../src/kubernetes/controller/index.ts'
import { ansibleRunOptions } from './ansible-run.ts'
import { kinds } from './kinds.ts'

export type ProviderOptions = { readonly lock?: 'none' | 'shard' }

export function ansibleControllers(options: ProviderOptions = {}): Controller[] {
  return [managed({ ...ansibleRunOptions(), ...options })]
}

if (import.meta.main) await runProvider({ name: 'provider-ansible', kinds, controllers: ansibleControllers })
