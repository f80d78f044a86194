import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { runMark, runUidVariable } from '../../workspace/process/index.ts'

/**
 * The last resort for a Run: a shell that reads from a pipe which its worker and the supervisor hold open. When both have exited (both were
 * killed by SIGKILL), it kills every process with the Run's environment variable or mark. It costs 1.5 MB and no CPU time.
 * It scans three times, for processes that are just being forked; a cgroup, if there is one, is killed as a whole.
 */
const script = `
trap '' INT TERM HUP
[ -p "$1" ] || mkfifo -m 600 "$1" || exit 1
echo armed
read -r _ < "$1"
for scan in 1 2 3; do
  if [ -n "$3" ]; then echo 1 > "$3/cgroup.kill"; fi
  for process in /proc/[0-9]*; do
    if grep -q "$2" "$process/environ" || grep -q "^Max file locks  *$4 " "$process/limits"; then kill -9 "\${process#/proc/}"; fi
  done
  sleep 0.1
done 2>/dev/null
`

export class Reaper {
  readonly #child: ChildProcess
  #fifo: number | undefined
  #isCanceled = false

  constructor(options: { fifo: string; runUid: string; cgroup: string | undefined; onArmed(): void }) {
    const { fifo, runUid, cgroup = '', onArmed } = options
    this.#child = spawn('/bin/sh', ['-c', script, 'oarlock-reaper', fifo, `${runUidVariable}=${runUid}`, cgroup, runMark(runUid).soft!], {
      // A session of its own: a signal to the supervisor's group does not reach it.
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      cwd: '/',
      // With a fallback for a minimal PATH: the script needs mkfifo, grep and sleep.
      env: { PATH: `${process.env.PATH ?? ''}:/usr/local/bin:/usr/bin:/bin` },
    })
    this.#child.on('error', () => {})
    this.#child.stdout?.once('data', () => {
      // The Run ended before this was read: nothing would close the pipe.
      if (this.#isCanceled) return
      try {
        this.#fifo = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
      } catch {
        // The Run has ended and its directory was removed.
        return
      }
      onArmed()
    })
    this.#child.unref()
  }

  /** Ends it before the pipe closes. */
  cancel(): void {
    this.#isCanceled = true
    this.#child.kill('SIGKILL')
    if (this.#fifo !== undefined) closeSync(this.#fifo)
    this.#fifo = undefined
  }
}
