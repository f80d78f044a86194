import type { StackSpec } from '../../../src/api/index.ts'
import { dispatchToStack, type StackDispatchOptions } from '../../../src/controllers/managed/index.ts'
import type { KubeObject } from '../../../src/kubernetes/index.ts'
import { type AnsibleRunBody, ansibleRunResource } from './kinds.ts'

/** A Stack of engine ansible that the object controls: each change, check for drift and deletion is a Run on a worker. */
export const ansibleRunOptions = (options: Partial<StackDispatchOptions<AnsibleRunBody>> = {}) =>
  dispatchToStack<AnsibleRunBody>({
    kind: ansibleRunResource,
    name: 'ansible-runs',
    stack: ({ object }) => stackSpecOf(object),
    atProvider: ({ status }) => ({ outputs: status?.outputs ?? {}, ...(status?.resources !== undefined && { hosts: status.resources }) }),
    connectionDetails: outputs =>
      Object.fromEntries(Object.entries(outputs).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])),
    ...options,
  })

export function stackSpecOf({ spec }: Pick<KubeObject<AnsibleRunBody>, 'spec'>): StackSpec {
  const { source, variables, variablesFrom, env, approval, drift, interval, timeout, retry, pool, isolation, ...ansible } = spec.forProvider
  return { engine: 'ansible', source, ansible, variables, variablesFrom, env, approval, drift, interval, timeout, retry, pool, isolation }
}
