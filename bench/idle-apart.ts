import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { installOarlock } from '../src/app/controllers/install.ts'
import { type Client, createClient } from '../src/kubernetes/client/index.ts'
import { accountKubeconfig, RoleProcesses } from '../test/support/role-process.ts'

export type RolesApart = { client: Client; kubeconfig: string; pids: Record<string, number>; stop(): Promise<void> }

/** As bin/oarlock sets it. */
const malloc = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TRIM_THRESHOLD_: '131072' }

/** Starts every role of an installation in a process of its own, with the ServiceAccount of that role, below `base`. */
export async function startRolesApart(base: string): Promise<RolesApart> {
  const roles = new RoleProcesses(base)
  try {
    const api = await roles.start('api', ['serve', '--data', '.', '--listen', '127.0.0.1:0'], /kubeconfig/, malloc)
    const kubeconfig = join(api.directory, 'kubeconfig')
    const client = await createClient({ kubeconfig })
    await installOarlock(client)
    const caCertificate = readFileSync(join(api.directory, 'pki', 'ca.crt'), 'utf8')
    const pids: Record<string, number> = { serve: api.child.pid as number }
    const listen = ['--listen', '127.0.0.1:0']
    const commands = {
      stores: listen,
      'join-service': listen,
      controller: ['--crds', 'check', '--health-address', '127.0.0.1:0', ...listen],
      pool: [],
    }
    for (const [role, args] of Object.entries(commands)) {
      const file = roles.file(role, 'kubeconfig', await accountKubeconfig(client, `oarlock-${role}`, caCertificate))
      const { child } = await roles.start(role, [role, ...args, '--kubeconfig', file, '--data', '.'], /^ *API /m, malloc)
      pids[role] = child.pid as number
    }
    return {
      client,
      kubeconfig,
      pids,
      stop: async () => {
        await client.close()
        await roles.stopAll()
      },
    }
  } catch (error) {
    await roles.stopAll()
    throw error
  }
}
