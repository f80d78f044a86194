/** A worker without a cgroup, which measures what its Runs use: processes that hide from the measurement. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StackSpec } from '../../../src/api/index.ts'
import type { Attack } from '../attack.ts'
import { joinToken } from '../join-token.ts'
import type { Target } from '../target.ts'

const launcher = join(import.meta.dirname, '..', '..', '..', 'bin', 'oarlock.js')

/** A worker of pool `edge` that has no cgroup, whatever this machine has. */
async function withWorker<T>(target: Target, work: () => Promise<T>): Promise<T> {
  const home = target.newPath()
  const file = `${home}.token`
  writeFileSync(file, await joinToken(target, '--uses', '1'), { mode: 0o600 })
  const child = spawn(process.execPath, [launcher, 'worker', '--server', target.url, '--token-file', file, '--name', 'no-cgroup'], {
    stdio: 'ignore',
    env: {
      ...{ PATH: process.env.PATH, OARLOCK_CGROUP: '/nonexistent' },
      ...{ OARLOCK_RUNS_DIR: join(home, 'runs'), OARLOCK_CACHE_DIR: join(home, 'cache') },
    },
  })
  const exited = once(child, 'exit')
  try {
    return await work()
  } finally {
    child.kill('SIGTERM')
    await exited
  }
}

/** In a session of its own and with an empty environment: nothing but its parent shows to which Run it belongs. */
const hide = (script: string): string => `exec env -i /usr/bin/setsid -w /bin/sh -c '${script}'`

type Resources = NonNullable<StackSpec['resources']>

const withoutCgroup: Attack = {
  name: 'limits-without-cgroup',
  actor: 'stack author',
  promise: 'Limits of Runs',
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    // With a limit no program ends before its timeout: the Run ends because of the limit, or later, however slow the machine is.
    const cases: { script: string; further: [limited: string, allowed: string]; resources: Resources; reason: string }[] = [
      {
        script: 'x=$(head -c 100000000 /dev/zero | tr "\\0" x); echo done; sleep $further',
        further: ['600', '0'],
        resources: { memory: '64Mi' },
        reason: 'OutOfMemory',
      },
      {
        script: 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do /usr/bin/setsid sleep 600 & done; echo done; sleep $further',
        further: ['600', '0'],
        resources: { pids: 12 },
        reason: 'TooManyProcesses',
      },
      {
        // It has left the group that is interrupted, so it writes on until it is killed.
        script:
          'i=0; while [ $i -lt $further ]; do i=$((i+1)); (exec 3>f$i; rm f$i; head -c 10000000 /dev/zero >&3; exec sleep 600) & sleep 0.3; done; echo done',
        further: ['200', '3'],
        resources: { disk: '16Mi' },
        reason: 'DiskLimit',
      },
    ]
    return await withWorker(target, async () => {
      const gained: string[] = []
      for (const { script, further, resources, reason } of cases) {
        const [limited, allowed] = [
          await target.runScript(hide(script.replace('$further', further[0])), { pool: 'edge', resources }),
          await target.runScript(hide(script.replace('$further', further[1])), { pool: 'edge' }),
        ]
        control(/^done$/m.test(allowed.log), `it does nothing: ${allowed.log}`)
        const { status } = limited.run ?? {}
        const enforcement = Object.values(status?.isolation?.limits ?? {})
        control(enforcement.join() === 'Watched', `the limit on ${Object.keys(resources)} is ${enforcement.join()}`)
        if (status?.reason !== reason) gained.push(`exceeded ${JSON.stringify(resources)} and ended with ${status?.reason}`)
      }
      return gained
    })
  },
}

export const limitsWithoutCgroupAttacks: readonly Attack[] = [withoutCgroup]
