import { deepEqual } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ClientRequest } from './client-request.ts'
import { endWithCredential } from './end-with-credential.ts'
import type { GatewayUser } from './user-headers.ts'

const everyMs = 10_000

async function endsAfter(t: TestContext, answers: readonly (GatewayUser | undefined | Error)[]) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const events: string[] = []
  let asked = 0
  const stop = endWithCredential({
    request: { headers: {} } as ClientRequest,
    user: { name: 'ann', uid: 'u1', groups: [] },
    async authenticate() {
      const answer = answers[asked++]
      if (answer instanceof Error) throw answer
      return answer
    },
    everyMs,
    end: () => void events.push(`ended after ${asked} checks`),
    onError: error => void events.push((error as Error).message),
  })
  for (const _ of answers) {
    t.mock.timers.tick(everyMs)
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
  }
  stop()
  t.mock.timers.tick(everyMs)
  deepEqual(asked, answers.length)
  return events
}

const ann: GatewayUser = { name: 'ann', uid: 'u1', groups: [] }
for (const [what, answers, expected] of [
  ['stays open while it is valid', [ann, ann], []],
  ['ends when it is revoked', [ann, undefined], ['ended after 2 checks']],
  ['ends when it is that of another user', [{ ...ann, name: 'eve' }], ['ended after 1 checks']],
  ['ends when it is that of a ServiceAccount that was created again', [{ ...ann, uid: 'u2' }], ['ended after 1 checks']],
  ['stays open while it cannot be checked', [new Error('home does not answer'), ann], ['home does not answer']],
] as const)
  test(`what was opened with a credential ${what}`, async t => deepEqual(await endsAfter(t, answers), expected))
