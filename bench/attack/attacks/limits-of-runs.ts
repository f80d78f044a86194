/** A Run that takes more than it may, or stays longer. */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, NotRunHere } from '../attack.ts'

const author = { actor: 'stack author', promise: 'Limits of Runs' } as const

/** Processes whose arguments contain the text, without those that only name it in a script. */
function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0 && readProcess(pid, 'cmdline').split('\0').includes(text))
}

function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** Sleeps for a number of seconds that no other process uses, by which it is found. */
const uniqueSleep = (): string => `600.${randomUUID().replace(/\D/g, '').slice(0, 12)}1`

/** Prints how many such processes there are, when there are as many as expected or 10 s have passed. */
const countProcesses = (seconds: string, expected: number): string =>
  `i=0; n=0; while [ $n -lt ${expected} -a $i -lt 100 ]; do i=$((i+1)); n=$(grep -lzx '[6]${seconds.slice(1)}' /proc/[0-9]*/cmdline 2>/dev/null | wc -l); [ $n -ge ${expected} ] || sleep 0.1; done; echo started $n`

const leaveProcesses = (seconds: string): string => `
  (trap '' INT TERM HUP; setsid sleep ${seconds} </dev/null >/dev/null 2>&1 &)
  (env -i /usr/bin/setsid /bin/sleep ${seconds} </dev/null >/dev/null 2>&1 &)
  (cd /; env -i /usr/bin/setsid /bin/sh -c '(trap "" INT TERM HUP; exec /bin/sleep ${seconds}) </dev/null >/dev/null 2>&1 &' &)
  env -i /usr/bin/setsid -f /bin/sleep ${seconds} </dev/null >/dev/null 2>&1; ${countProcesses(seconds, 4)}`

async function leftProcesses(seconds: string): Promise<string[]> {
  // What was killed needs a moment to end.
  for (let i = 0; i < 20 && processesWith(seconds).length > 0; i++) await sleep(50)
  const left = processesWith(seconds)
  for (const pid of left) process.kill(pid, 'SIGKILL')
  return left.length > 0 ? [`${left.length} processes outlived their Run`] : []
}

const sandboxProcesses: Attack = {
  name: 'left-process-sandbox',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const seconds = uniqueSleep()
    const { log } = await target.runScript(leaveProcesses(seconds))
    control(/^started [4-9]/m.test(log), `it did not start its processes: ${log}`)
    return await leftProcesses(seconds)
  },
}

const plainProcesses: Attack = {
  name: 'left-process-plain',
  ...author,
  limit: {
    sentence: 'At level Process a program that wants to survive its Run can',
    gained: ['a process that removed all of its marks outlived its Run'],
  },
  async attempt(target, control) {
    const [seconds, unmarked] = [uniqueSleep(), uniqueSleep()]
    const removeMarks = `env -i /usr/bin/setsid /bin/sh -c '/usr/bin/prlimit --pid $$ --locks=1:1; exec /bin/sleep ${unmarked}' </dev/null >/dev/null 2>&1 &`
    const { log, run } = await target.runScript(`${removeMarks} ${leaveProcesses(seconds)}; ${countProcesses(unmarked, 1)} unmarked`, {
      isolation: { level: 'Process' },
    })
    const [gained, outlived] = [await leftProcesses(seconds), await leftProcesses(unmarked)]
    const tracking = run?.status?.isolation?.processTracking
    if (tracking !== 'ResourceLimit' && tracking !== 'Cgroup') throw new NotRunHere(`processes are found by ${tracking} only`)
    control(/^started [4-9]$/m.test(log) && log.includes('started 1 unmarked'), `it did not start its processes: ${log}`)
    return outlived.length > 0 ? [...gained, 'a process that removed all of its marks outlived its Run'] : gained
  },
}

const forkBomb: Attack = {
  name: 'fork-bomb',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    const seconds = uniqueSleep()
    const { run } = await target.runScript(`while :; do setsid sleep ${seconds} & done`, { resources: { pids: 100 }, timeout: '20s' })
    const gained = await leftProcesses(seconds)
    if (run?.status?.reason !== 'TooManyProcesses') gained.push(`ended with ${run?.status?.reason}`)
    const peak = run?.status?.usage?.peakPids ?? 0
    control(peak > 50, `${peak} processes were started`)
    return peak > 5_000 ? [...gained, `${peak} processes, limit 100`] : gained
  },
}

const memory: Attack = {
  name: 'memory-file-systems',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    const script = `
      for d in / /dev /dev/shm /run /etc /proc /sys/fs /var /usr/local; do
        head -c 300000000 /dev/zero > $d/attack 2>/dev/null; size=$(stat -c %s $d/attack 2>/dev/null || echo 0)
        [ $size -gt 70000000 ] && echo "wrote $size bytes to $d"
      done; head -c 1000000 /dev/zero > own; echo own $(stat -c %s own)`
    const { log } = await target.runScript(script, { resources: { memory: '128Mi', disk: '64Mi' } })
    control(/^own 1000000$/m.test(log), `it writes no file of its own: ${log}`)
    return [...log.matchAll(/^wrote .*$/gm)].map(([line]) => line)
  },
}

const disk: Attack = {
  name: 'disk',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    // Many files, links among them, in every directory that it may write; a deleted file that is still open.
    const script = `exec 3> gone; rm gone; head -c 200000000 /dev/zero >&3; i=0
      while [ $i -lt 60 ]; do for d in . $HOME $TMPDIR /tmp $(dirname $OARLOCK_OUTPUTS); do head -c 8000000 /dev/zero > $d/f$i 2>/dev/null; done; i=$((i+1)); sleep 0.1; done; echo survived`
    const { log, run } = await target.runScript(script, { resources: { disk: '64Mi' }, timeout: '40s' })
    control(run?.status?.reason === 'DiskLimit', `it ended with ${run?.status?.reason}`)
    return log.includes('survived') ? [`wrote 2.4 GB, limit 64Mi, and ended with ${run?.status?.phase}`] : []
  },
}

/** What a program writes where a measurement might not look. It works where it is allowed: without a limit the Run succeeds. */
const hiddenOnDisk = (name: string, script: string, more: Pick<Attack, 'slow'> = {}): Attack => ({
  name,
  ...author,
  ...more,
  async attempt(target, control) {
    target.requireSandbox()
    const write = `${script}; [ $? -eq 0 ] && echo wrote`
    const [limited, allowed] = await Promise.all([
      target.runScript(`${write}; sleep 30`, { resources: { disk: '24Mi' }, timeout: '25s' }),
      target.runScript(write),
    ])
    control(/^wrote$/m.test(allowed.log) && allowed.run?.status?.phase === 'Succeeded', `it does not write: ${allowed.log}`)
    const reason = limited.run?.status?.reason
    return reason === 'DiskLimit' ? [] : [`wrote more than 24Mi and ended with ${reason}`]
  },
})

const writeFiles = 'for (1..8) { open(F, ">", "f$_"); print F "x" x 4e6; close F }'
const hidden: readonly Attack[] = [
  // The files are there for several measurements, of which there is one in 1 to 1.3 s.
  hiddenOnDisk(
    'disk-deleted-files',
    `perl -e 'for (1..8) { open(my $f, ">", "f"); unlink "f"; print $f "x" x 4e6; $f->flush; push @f, $f } sleep 5'`,
  ),
  hiddenOnDisk('disk-empty-files', `perl -e 'for (1..4000) { open(F, ">", "f$_"); mkdir "d$_" }'`, { slow: true }),
  hiddenOnDisk('disk-long-path', `perl -e '$n = "x" x 200; for (1..30) { mkdir $n; chdir $n } ${writeFiles}'`),
  hiddenOnDisk('disk-unreadable-directory', `mkdir d && (cd d; perl -e '${writeFiles}') && chmod 000 d`),
  hiddenOnDisk('disk-not-utf8', `perl -e 'mkdir "\\xff"; chdir "\\xff"; ${writeFiles}'`, { slow: true }),
]

/** The limit is measured: a program that ignores the interrupt writes on. */
const writesOn: Attack = {
  name: 'disk-after-interrupt',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    const count = 'i=0; while [ $i -lt 200 ]; do head -c 4000000 /dev/zero > f$i; i=$((i+1)); sleep 0.05; done; echo wrote all'
    const resources = { disk: '32Mi' }
    const [{ log, run }, allowed] = await Promise.all([
      target.runScript(`trap '' INT TERM; ${count}`, { resources }),
      target.runScript(`trap '' INT TERM; ${count.replace('200', '5')}`, { resources }),
    ])
    control(allowed.log.includes('wrote all'), `it writes nothing: ${allowed.log}`)
    const gained = log.includes('wrote all') ? ['wrote 800 MB, limit 32Mi'] : []
    return run?.status?.reason === 'DiskLimit' ? gained : [...gained, `ended with ${run?.status?.reason}`]
  },
}

const output: Attack = {
  name: 'endless-output',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    const rss = () => Number(/^VmRSS:\s+(\d+)/m.exec(readProcess(target.pid, 'status'))?.[1] ?? 0) / 1024
    const before = rss()
    const { run } = await target.runScript(
      `head -c 200000000 /dev/zero | tr '\\0' x; yes '{"@level":"info"}' | head -c 100000000; head -c 20000000 /dev/urandom`,
      {
        timeout: '60s',
      },
    )
    const log = await target.victim.client.request({ method: 'GET', path: `/logs/attacker/${run?.metadata.name}` })
    control((await log.text()).length > 1_000_000, 'its output was not stored')
    const grown = rss() - before
    const gained = grown > 300 ? [`the control plane grew by ${Math.round(grown)} MB`] : []
    return run?.status?.finishedAt ? gained : [...gained, 'the Run did not end']
  },
}

const descriptors: Attack = {
  name: 'descriptors-and-signals',
  ...author,
  slow: true,
  async attempt(target, control) {
    target.requireSandbox()
    // Each of the sandbox's own limits may be exhausted; that of the machine and of other Runs may not.
    const flood = target.runScript(
      `ulimit -n $(ulimit -Hn); perl -e 'my @f; while (open(my $h, "<", "/dev/null")) { push @f, $h; last if @f > 500000 } close($_) for splice(@f, 0, 10); print scalar(@f), " open\n"; pipe(my $a, my $b) for 1..10; sleep 2' ; true`,
    )
    const other = await target.runScript('ls / > /dev/null && echo works')
    const [, opened] = /^(\d+) open$/m.exec((await flood).log) ?? []
    control(Number(opened) > 200, `it opened ${opened} files`)
    return other.log.includes('works') ? [] : ['another Run could not open files']
  },
}

export const runLimitAttacks: readonly Attack[] = [
  sandboxProcesses,
  plainProcesses,
  forkBomb,
  memory,
  disk,
  ...hidden,
  writesOn,
  output,
  descriptors,
]
