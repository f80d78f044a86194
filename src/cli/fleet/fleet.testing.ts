import type { Run, RunPhase, Stack, StackStatus } from '../../api/index.ts'

type StackOptions = {
  conditions?: StackStatus['conditions']
  generation?: number
  annotations?: Record<string, string>
  dependsOn?: string[]
  outputsOf?: string[]
  status?: StackStatus
}

/** A Stack in namespace shop, as a server returns it. */
export function makeStack(name: string, options: StackOptions = {}): Stack {
  const { conditions, generation = 1, annotations, dependsOn = [], outputsOf = [], status } = options
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Stack',
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      generation,
      annotations,
    },
    spec: {
      engine: 'terraform',
      source: { inline: { files: { 'main.tf': '' } } },
      dependsOn: dependsOn.map(name => ({ name })),
      variablesFrom: outputsOf.map(name => ({ stackRef: { name } })),
    },
    ...(conditions && { status: { observedGeneration: 1, conditions, ...status } }),
  }
}

/** A Run of the Stack called `stackName`. */
export function makeRun(stackName: string, epoch: number, phase: RunPhase, status: Partial<Run['status']> = {}): Run {
  const stack = makeStack(stackName)
  return {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: {
      name: `${stackName}-abcde-${epoch}`,
      namespace: 'shop',
      uid: `uid-${stackName}-${epoch}`,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'oarlock.dev/stack': stackName },
    },
    spec: {
      type: 'Apply',
      stackRef: { name: stackName, uid: stack.metadata.uid, generation: 1 },
      epoch,
      stack: stack.spec,
      revision: 'r',
      inputsDigest: 'i',
      reason: 'NewGeneration',
      pool: 'default',
      priority: 0,
    },
    status: { phase, ...status },
  }
}
