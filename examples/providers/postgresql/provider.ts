/** The provider: `node examples/providers/postgresql/provider.ts --help`. */

import { managed, runProvider } from '../../../src/controllers/managed/index.ts'
import type { Controller } from '../../../src/kubernetes/controller/index.ts'
import { databaseOptions } from './database.ts'
import { extensionOptions } from './extension.ts'
import { grantOptions } from './grant.ts'
import { kinds } from './kinds.ts'
import { roleOptions } from './role.ts'

export type ProviderOptions = { readonly lock?: 'none' | 'shard'; readonly pollIntervalMs?: number; readonly deletionCheckMs?: number }

/** The controllers of all four kinds. */
export function postgresqlControllers(options: ProviderOptions = {}): Controller[] {
  return [
    managed({ ...databaseOptions, ...options }),
    managed({ ...roleOptions, ...options }),
    managed({ ...grantOptions, ...options }),
    managed({ ...extensionOptions, ...options }),
  ]
}

if (import.meta.main) await runProvider({ name: 'provider-postgresql', kinds, controllers: postgresqlControllers })
