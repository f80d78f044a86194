import type { EngineName, Run, Stack } from '../../api/index.ts'
import type { InputObject } from '../../stores/state/index.ts'
import { type GitCredentials, gitCredentials } from '../workspace/index.ts'
import { resolveInputs } from './run/inputs.ts'
import { enforcePolicy } from './run/isolation.ts'
import { WorkerOptionError } from './worker-option-error.ts'

/** A source on this host, for Runs of any Stack of a domain. */
export type WarmSource = {
  /** The root of the source, absolute. */
  source: string
  /** Of the project in the source. Default: its root. */
  directory?: string | undefined
  /** Default: by the files of the project. */
  engine?: EngineName | undefined
  /** As `oarlock cache list` prints it: `namespace-NAME` or `tenant-UID`, with `process-` before it for Runs without a sandbox. */
  domain: string
}

/** A Stack, for its own Runs. */
export type WarmStack = {
  stack: Stack
  /** A Run that the dispatcher has assigned: it has recorded the Tenant and the policy of the pool, which decide on the trust domain. */
  assigned: Run
  /** The Secrets that {@link secretsToWarm} names. */
  secrets: readonly InputObject[]
}

/** A Run that installs and executes nothing else. */
export type WarmRun = {
  run: Run
  /** Of the Stack, besides those of the worker. */
  env: Readonly<Record<string, string>>
  /** Names of the variables that an install does not get, unless the Stack names them in `installEnvironment`. */
  credentialNames: readonly string[]
  credentials?: GitCredentials | undefined
}

/** A Run of no Stack, as the dispatcher would assign it. @throws {WorkerOptionError} for a domain of another form. */
export function runOfSource({ domain, source, engine }: WarmSource): WarmRun {
  const [, isProcess, kind, owner] = /^(process-)?(namespace|tenant)-([A-Za-z0-9][\w.-]*)$/.exec(domain) ?? []
  if (owner === undefined) {
    throw new WorkerOptionError(
      `--domain must be namespace-NAME or tenant-UID, with "process-" before it for Runs without a sandbox, got ${JSON.stringify(domain)}`,
    )
  }
  const isolation = isProcess ? ({ level: 'Process' } as const) : ({ level: 'Sandbox', network: 'Private' } as const)
  const uid = globalThis.crypto.randomUUID()
  const run = {
    apiVersion: 'oarlock.dev/v1alpha1',
    kind: 'Run',
    metadata: { name: nameOf(uid), namespace: kind === 'namespace' ? owner : 'cache-warm', uid },
    spec: {
      ...{ type: 'Plan', epoch: 0, stackRef: { name: 'cache-warm', uid, generation: 1 } },
      stack: { engine: engine ?? 'command', source: { path: { path: source } }, state: 'External', isolation },
      ...(kind === 'tenant' && { tenant: { name: owner, uid: owner } }),
    },
  } as Run
  return { run, env: {}, credentialNames: [] }
}

/** Names of Secrets of which an install of the Stack gets a value, or with which its source is fetched. */
export function secretsToWarm(stack: Stack): string[] {
  const { source } = stack.spec
  const git = source.git?.secretRef ? [source.git.secretRef.name] : []
  return [...new Set([...git, ...installedEnv(stack).flatMap(({ secretKeyRef }) => (secretKeyRef ? [secretKeyRef.name] : []))])]
}

/**
 * A Run of the Stack with its present spec, in the trust domain of the one that was assigned.
 * @throws {InputError} if a Secret or a key does not exist. {SourceError} if the Secret of the source has no credentials.
 */
export function runOfStack({ stack, assigned, secrets }: WarmStack): WarmRun {
  const { namespace } = assigned.metadata
  const uid = globalThis.crypto.randomUUID()
  const spec = { ...stack.spec, env: [...installedEnv(stack)] }
  const { run } = enforcePolicy(
    {
      ...assigned,
      metadata: { name: nameOf(uid), namespace, uid },
      spec: { ...assigned.spec, type: 'Plan', epoch: 0, stackRef: { ...assigned.spec.stackRef, uid }, stack: spec },
    } as Run,
    {},
  )
  const { variablesFrom: _, manifests: __, ansible: ___, ...needed } = run.spec.stack
  const inputs = resolveInputs({ ...run, spec: { ...run.spec, stack: needed } }, { secrets, configMaps: [], outputs: [] })
  const secret = inputs.gitSecret && `${namespace}/${stack.spec.source.git?.secretRef?.name}`
  return {
    run,
    env: inputs.env,
    credentialNames: inputs.secretEnvNames,
    credentials: inputs.gitSecret && gitCredentials(inputs.gitSecret.data, secret!, inputs.gitSecret.keys),
  }
}

/** Variables of the Stack that its installs get: all but those of Secrets that the Stack does not name for them. */
function installedEnv({ spec }: Stack) {
  const named = new Set([
    ...(spec.pulumi?.installEnvironment ?? []),
    ...(spec.command?.installEnvironment ?? []),
    ...(spec.ansible?.installEnvironment ?? []),
  ])
  return (spec.env ?? []).filter(({ name, secretKeyRef }) => secretKeyRef === undefined || named.has(name))
}

const nameOf = (uid: string) => `cache-warm-${uid.slice(0, 8)}`
