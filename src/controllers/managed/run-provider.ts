import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { createClient, installKinds } from '../../kubernetes/client/index.ts'
import { type Controller, consoleLog, Manager } from '../../kubernetes/controller/index.ts'
import type { CustomResource } from '../../kubernetes/object/index.ts'

/** What a provider is made of. */
export type ProviderProgram = {
  /** Name of the Leases that its replicas share, such as `provider-postgresql`. */
  readonly name: string
  /** What `--install-kinds` installs. */
  readonly kinds: readonly CustomResource<unknown>[]
  /** `lock` is the option of `managed` that fits the number of replicas. */
  controllers(options: { readonly lock: 'none' | 'shard' }): readonly Controller[]
  /** Closes what the controllers share, after they have stopped. */
  close?(): Promise<void>
}

const maxShards = 1_024

const helpOf = (name: string) => `Usage: ${name} [--install-kinds] [--shards N] [--port PORT] [KUBECONFIG]

  --install-kinds   installs the CRDs, waits until they are served, and ends; requires a user who may create CRDs
  --shards N        at most N replicas are active at the same time, each for its own resources; default: one leader
  --port PORT       of /livez, /readyz and /metrics (default: 8080; 0: any)
  --help            this text

KUBECONFIG is a file; default: the environment variable, the ServiceAccount of the Pod, or ~/.kube/config.
Leases are in the namespace POD_NAMESPACE (default: default).
`

/** Arguments that cannot be used, with what is allowed. */
class UsageError extends Error {}

type Arguments = {
  readonly help: boolean
  readonly installs: boolean
  readonly shards: number
  readonly port: number
  readonly kubeconfig: string | undefined
}

function readArguments(args: readonly string[]): Arguments {
  const integer = (flag: string, text: string, minimum: number, maximum: number) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= minimum && value <= maximum) return value
    throw new UsageError(`${flag} must be an integer from ${minimum} to ${maximum}, got ${JSON.stringify(text)}`)
  }
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ help: { type: 'boolean', default: false }, 'install-kinds': { type: 'boolean', default: false } },
        ...{ shards: { type: 'string', default: '1' }, port: { type: 'string', default: '8080' } },
      },
    })
    if (positionals.length > 1) throw new UsageError(`expected one KUBECONFIG, got ${positionals.join(' ')}`)
    return {
      help: values.help,
      installs: values['install-kinds'],
      shards: integer('--shards', values.shards, 1, maxShards),
      port: integer('--port', values.port, 0, 65_535),
      kubeconfig: positionals[0],
    }
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error
  }
}

/**
 * The program of a provider: reads its arguments, and runs a manager with its controllers until SIGTERM or SIGINT. With wrong arguments, it prints what is
 * allowed and sets exit code 2; a failure, such as of the kubeconfig, is printed and sets exit code 1.
 * @param args default: those of the process.
 */
export async function runProvider(program: ProviderProgram, args: readonly string[] = process.argv.slice(2)): Promise<void> {
  const { name } = program
  let parsed: Arguments
  try {
    parsed = readArguments(args)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${name}: ${error.message}; see --help\n`)
    process.exitCode = 2
    return
  }
  if (parsed.help) {
    process.stdout.write(helpOf(name))
    return
  }
  try {
    await run(program, parsed)
  } catch (error) {
    process.stderr.write(`${name}: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}

async function run(program: ProviderProgram, parsed: Arguments): Promise<void> {
  const client = await createClient({ kubeconfig: parsed.kubeconfig })
  try {
    if (parsed.installs) await installKinds(client, program.kinds)
    else await runManager(program, parsed, client)
  } finally {
    await program.close?.()
    await client.close()
  }
  if (parsed.installs) process.stdout.write(`installed ${program.kinds.map(({ plural, group }) => `${plural}.${group}`).join(', ')}\n`)
}

async function runManager(
  { name, controllers }: ProviderProgram,
  { shards, port }: Arguments,
  client: Awaited<ReturnType<typeof createClient>>,
): Promise<void> {
  const namespace = process.env.POD_NAMESPACE ?? 'default'
  const isSharded = shards > 1
  const leaderElection = { namespace, leaseName: name, identity: `${hostname()}-${process.pid}` }
  const manager = new Manager({
    ...{ client, log: consoleLog('info'), probes: { port } },
    ...(isSharded ? { shards: { name, namespace, slots: shards } } : { leaderElection }),
  })
  for (const controller of controllers({ lock: isSharded ? 'shard' : 'none' })) manager.add(controller)
  await manager.run()
}
