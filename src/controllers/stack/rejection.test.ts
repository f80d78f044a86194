import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { StackFacts } from './facts.ts'
import { formatRejected } from './rejection.ts'

test('the message of a rejection has the reason on one line, with hidden characters escaped', () => {
  const reason = ' no\u001b[2K\u001b]8;;https://evil.example\u001b\\here\r\nReady:\u2028True \u001b[32mgreen\u202egnp\u200b.\n'
  const facts = {
    input: { stack: { metadata: { name: 'app', namespace: 'default' } } },
    record: { plan: { digest: 'sha256:aaa', runName: 'app-1' }, rejection: { user: 'zoe', reason } },
  }
  equal(
    formatRejected(facts as unknown as StackFacts),
    'Plan sha256:aaa of Run app-1 was rejected by user "zoe": no\\u001b[2K\\u001b]8;;https://evil.example\\u001b\\here Ready: True ' +
      '\\u001b[32mgreen\\u202egnp\\u200b. It is not applied; change the Stack, or request another plan with oarlock plan app -n default',
  )
})
