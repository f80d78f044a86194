import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { ResourceProgress } from './resource-progress.ts'

function follow(text: string) {
  const progress = new ResourceProgress()
  text.split('\n').forEach((line, index) => void progress.add(line, index, 1_000 * index))
  return { noun: progress.noun, tasks: [...progress.items.values()] }
}
const brief = (text: string) => follow(text).tasks.map(({ name, state, action }) => `${name}: ${state}, ${action}`)

test('a task of Ansible runs until the next one begins, and its line and duration are known', () => {
  deepEqual(follow('Applying\nPLAY [web] ***\n\nTASK [Gathering Facts] ***\nok: [a]\n\nTASK [nginx : Install] ***\nchanged: [a]'), {
    noun: 'task',
    tasks: [
      { name: 'Gathering Facts', action: 'run', state: 'done', line: 3, startedMs: 3_000, durationMs: 3_000 },
      { name: 'nginx : Install', action: 'change', state: 'running', line: 6, startedMs: 6_000 },
    ],
  })
})

test('of a check only tasks that would change something are listed, as planned, and they run when it is applied', () => {
  const check = 'Planning\nPLAY [web] ***\nTASK [Install] ***\nok: [a]\nTASK [Configure] ***\n--- before\nchanged: [a]\nPLAY RECAP ***'
  deepEqual(brief(check), ['Configure: planned, change'])
  const apply = 'Applying\nPLAY [web] ***\nTASK [Install] ***\nok: [a]\nTASK [Configure] ***'
  deepEqual(brief(`${check}\n${apply}`), ['Configure: running, run', 'Install: done, run'])
})

test('a task fails when a host does, unless its errors are ignored', () => {
  const text = `Applying
PLAY [all] ***
TASK [Ping] ***
fatal: [b]: UNREACHABLE! => {"changed": false}
ok: [a]
TASK [May fail] ***
fatal: [a]: FAILED! => {"msg": "no"}
...ignoring
TASK [Ignored loop] ***
failed: [a] (item=x) => {"msg": "no"}
failed: [a] (item=y) => {"msg": "no"}
...ignoring
failed: [b -> localhost] (item=x) => {"msg": "no"}
...ignoring
TASK [Loop] ***
failed: [a] (item=x) => {"msg": "no"}
changed: [a] => (item=y)
NO MORE HOSTS LEFT ***
PLAY RECAP ***`
  deepEqual(brief(text), ['Ping: failed, run', 'May fail: done, run', 'Ignored loop: done, run', 'Loop: failed, change'])
})

test('handlers are followed, skipped tasks are done, and tasks with the same name are distinguished', () => {
  const text = `Applying
PLAY [all] ***
TASK [Include] ***
skipping: [a]
TASK [Copy [1]] ***
changed: [a -> localhost]
TASK [Copy [1]] ***
ok: [a]
RUNNING HANDLER [Restart] ***
changed: [a]
PLAY [again] ***
TASK [Copy [1]] ***
ok: [a]
PLAY [all] ***
TASK [Include] ***
ok: [a]
PLAY RECAP ***
a : ok=4`
  deepEqual(brief(text), [
    'Include: done, skip',
    'Copy [1]: done, change',
    'Copy [1] (2): done, run',
    'Restart: done, change',
    'Copy [1]: done, run',
    'Include (2): done, run',
  ])
})

test('lines in the form of results are not about a task before one has begun', () => {
  deepEqual(follow('Applying\nok: [a]\n...ignoring\nTASK without brackets ***'), { noun: 'resource', tasks: [] })
})

test('names of any length, and any number of tasks, take bounded memory', () => {
  const play = 'x'.repeat(15_000)
  const tasks = Array.from({ length: 12_000 }, (_, index) => `TASK [${index}${'y'.repeat(500)}] ***`)
  const { tasks: found } = follow(['Applying', `PLAY [${play}] ***`, ...tasks].join('\n'))
  deepEqual([found.length, Math.max(...found.map(({ name }) => name.length))], [10_000, 300])
})
