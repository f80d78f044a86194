// A child process for the kill test in `open-state-store.test.ts`: writes continuously and reports what was acknowledged.
import { openStateStore } from './open-state-store.ts'

const [directory = '', round = ''] = process.argv.slice(2)
const store = await openStateStore({ directory, key: Buffer.alloc(32, 7), limits: { versionsPerStack: 100_000 } })
for (let stack = 0; stack < 4; stack++) {
  void (async () => {
    for (let i = 0; ; i++) {
      const content = `${round}-${stack}-${i} ${'x'.repeat(2_000)}`
      const result = await store.writeVersion({
        stackUid: `uid-${stack}`,
        runName: `run-${round}`,
        epoch: Number(round),
        bytes: Buffer.from(content),
      })
      if (result.kind === 'accepted') process.send?.({ stackUid: `uid-${stack}`, version: result.version, content })
    }
  })()
}
