import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { detectEngines } from '../../execution/engine/index.ts'
import {
  availableIsolationLevels,
  availableNetworks,
  canMarkProcesses,
  findDelegatedCgroup,
  privateNetworkProblem,
  probeIsolation,
} from '../../execution/workspace/index.ts'
import { type AccessOptions, dataDirectory, findKubeconfig, withClient } from '../access.ts'
import { formatError } from '../cli-error.ts'
import { enforceablePolicies } from './enforceable-policies.ts'
import type { Finding } from './finding.ts'

const minNodeMajor = 24

/** What this machine has of what Oarlock can use: Node, engines, sandboxes, limits, its data directory and its API server. */
export async function machineFindings(options: AccessOptions & { data?: string }): Promise<Finding[]> {
  return [
    node(),
    ...(await engines()),
    await program('git', ['--version'], 'sources from git repositories'),
    await sandbox(),
    await sandboxNetwork(),
    limits(),
    enforceablePolicies({
      levels: await availableIsolationLevels(),
      networks: await availableNetworks(),
      limitsCpu: findDelegatedCgroup()?.controllers.has('cpu') === true,
    }),
    processTracking(),
    data(options.data),
    await server(options),
  ]
}

function node(): Finding {
  const isNew = Number(process.versions.node.split('.')[0]) >= minNodeMajor
  return {
    what: 'node',
    state: isNew ? 'ok' : 'problem',
    detail: process.version,
    ...(!isNew && { fix: `Oarlock needs Node ${minNodeMajor} or newer` }),
  }
}

async function engines(): Promise<Finding[]> {
  const detected = await detectEngines(process.env)
  return Object.entries(detected).map(([name, found]) =>
    found.found
      ? { what: `engine ${name}`, state: 'ok', detail: [found.version, found.path].filter(Boolean).join('  ') }
      : {
          what: `engine ${name}`,
          state: 'warning',
          detail: `not found (${found.reasons.join(', ')})`,
          fix: found.howToInstall,
        },
  )
}

async function program(name: string, args: string[], purpose: string): Promise<Finding> {
  try {
    const { stdout } = await promisify(execFile)(name, args, { timeout: 10_000 })
    return { what: name, state: 'ok', detail: stdout.trim().split('\n')[0] ?? '' }
  } catch {
    return { what: name, state: 'warning', detail: 'not found', fix: `required for ${purpose}; install it with your package manager` }
  }
}

async function sandbox(): Promise<Finding> {
  const what = 'sandbox'
  const found = await probeIsolation('Sandbox')
  if (found.available) {
    const { bwrap, account } = found.sandbox!
    return { what, state: 'ok', detail: `isolation level Sandbox, with ${bwrap}${account ? `, as uid ${account.uid}` : ''}` }
  }
  return { what, state: 'warning', detail: found.reason, fix: 'required for Stacks with spec.isolation.level Sandbox' }
}

async function sandboxNetwork(): Promise<Finding> {
  const what = 'sandbox network'
  const found = await probeIsolation('Sandbox')
  const problem = found.available ? privateNetworkProblem(found.sandbox?.slirp4netns) : 'level Sandbox is not available'
  if (problem === undefined) return { what, state: 'ok', detail: 'network Private, with slirp4netns' }
  return { what, state: 'warning', detail: problem, fix: 'required for Stacks with level Sandbox, unless spec.isolation.network is None' }
}

function limits(): Finding {
  const what = 'limits'
  const parent = findDelegatedCgroup()
  const enforced = ['memory', 'pids', 'cpu'].filter(controller => parent?.controllers.has(controller as 'cpu'))
  if (enforced.length === 3) return { what, state: 'ok', detail: `enforced by the kernel in ${parent?.path}` }
  const where = parent ? `cgroup v2 ${parent.path} has ${enforced.join(', ') || 'no controllers'}` : 'no writable cgroup v2'
  return {
    what,
    state: 'warning',
    detail: `${where}; the worker monitors memory and pids, cpu is not limited`,
    fix: 'delegate a cgroup and set OARLOCK_CGROUP to its path (docs/isolation.md)',
  }
}

function processTracking(): Finding {
  const what = 'process tracking'
  const cgroup = findDelegatedCgroup()
  if (cgroup) return { what, state: 'ok', detail: `level Process kills leftover processes in the cgroup of their Run below ${cgroup.path}` }
  if (canMarkProcesses())
    return { what, state: 'ok', detail: 'level Process finds leftover processes by their environment and a resource limit' }
  return {
    what,
    state: 'warning',
    detail: 'level Process finds leftover processes by their environment only: not those that cleared it',
    fix: 'install util-linux (prlimit), or delegate a cgroup (docs/isolation.md)',
  }
}

function data(option: string | undefined): Finding {
  const directory = dataDirectory(option)
  let existing = directory
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing)
  try {
    accessSync(existing, constants.W_OK)
    return { what: 'data directory', state: 'ok', detail: `${directory}${existing === directory ? '' : ' (does not exist yet)'}` }
  } catch {
    return {
      what: 'data directory',
      state: 'problem',
      detail: `${directory} is not writable`,
      fix: 'choose another directory with --data or OARLOCK_DATA',
    }
  }
}

async function server(options: AccessOptions): Promise<Finding> {
  const kubeconfig = findKubeconfig(options.kubeconfig)
  try {
    return await withClient(options, async client => {
      const response = await client.request({ method: 'GET', path: '/version', timeoutMs: 5_000 })
      const { gitVersion } = (await response.json()) as { gitVersion?: string }
      return { what: 'API server', state: 'ok', detail: `${client.server}  ${gitVersion ?? ''}${kubeconfig ? `  (${kubeconfig})` : ''}` }
    })
  } catch (error) {
    const { message, hint } = formatError(error)
    return { what: 'API server', state: 'warning', detail: message, fix: hint }
  }
}
