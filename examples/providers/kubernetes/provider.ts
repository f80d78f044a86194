/** The provider: `node examples/providers/kubernetes/provider.ts --help`. */

import { managed, runProvider } from '../../../src/controllers/managed/index.ts'
import type { Controller } from '../../../src/kubernetes/controller/index.ts'
import { Clusters } from './clusters.ts'
import { kinds } from './kinds.ts'
import { objectOptions } from './remote-object.ts'

export type ProviderOptions = { readonly lock?: 'none' | 'shard'; readonly pollIntervalMs?: number; readonly deletionCheckMs?: number }

export function kubernetesController(clusters: Clusters, options: ProviderOptions = {}): Controller {
  return managed({ ...objectOptions(clusters), ...options })
}

if (import.meta.main) {
  const clusters = new Clusters()
  await runProvider({
    name: 'provider-kubernetes',
    kinds,
    controllers: options => [kubernetesController(clusters, options)],
    close: () => clusters.close(),
  })
}
