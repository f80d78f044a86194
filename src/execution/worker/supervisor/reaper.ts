import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { runUidVariable } from '../../workspace/process/index.ts'

/**
 * The last resort for a Run: a shell that sleeps on a pipe which its worker and the supervisor hold open, and kills what carries the Run's
 * mark when both are gone at once (kill -9 of the two, or of everything with their name). It costs 1.5 MB and no CPU time.
 * Looks three times, for what was being born; the cgroup, where there is one, is killed as a whole.
 */
const script = `
trap '' INT TERM HUP
[ -p "$1" ] || mkfifo -m 600 "$1" || exit 1
echo armed
read -r _ < "$1"
for look in 1 2 3; do
  if [ -n "$3" ]; then echo 1 > "$3/cgroup.kill"; fi
  for process in /proc/[0-9]*; do
    if grep -q "$2" "$process/environ"; then kill -9 "\${process#/proc/}"; fi
  done
  sleep 0.1
done 2>/dev/null
`

export class Reaper {
  readonly #child: ChildProcess
  #fifo: number | undefined

  constructor(options: { fifo: string; runUid: string; cgroup: string | undefined; onArmed(): void }) {
    const { fifo, runUid, cgroup = '', onArmed } = options
    this.#child = spawn('/bin/sh', ['-c', script, 'oarlock-reaper', fifo, `${runUidVariable}=${runUid}`, cgroup], {
      // A session of its own: what ends the supervisor's group leaves it.
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      cwd: '/',
      // Also where PATH leads to few programs: the script needs mkfifo, grep and sleep.
      env: { PATH: `${process.env.PATH ?? ''}:/usr/local/bin:/usr/bin:/bin` },
    })
    this.#child.on('error', () => {})
    this.#child.stdout?.once('data', () => {
      try {
        this.#fifo = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
      } catch {
        // The Run is over already, and its directory gone.
        return
      }
      onArmed()
    })
    this.#child.unref()
  }

  /** Sends it home, before the pipe closes. */
  cancel(): void {
    this.#child.kill('SIGKILL')
    if (this.#fifo !== undefined) closeSync(this.#fifo)
    this.#fifo = undefined
  }
}
