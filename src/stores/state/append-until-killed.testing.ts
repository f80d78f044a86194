// A child process for the kill test in `open-state-store.test.ts`: appends journal entries and writes checkpoints continuously, and reports what was
// acknowledged.
import { openStateStore } from './open-state-store.ts'
import { batch, created, stateOf } from './pulumi-journal.testing.ts'

const [directory = '', round = ''] = process.argv.slice(2)
const store = await openStateStore({ directory, key: Buffer.alloc(32, 7) })
const run = { runName: `run-${round}`, epoch: Number(round) }
const entriesOfUpdate = 30

for (let stack = 0; stack < 3; stack++) {
  void (async () => {
    const stackUid = `journal-${stack}`
    for (let update = 1; ; update++) {
      for (let entry = 1; entry < entriesOfUpdate; entry += 3) {
        const names = [0, 1, 2].map(index => `${round}-${update}-${entry + index}`)
        const bytes = batch(...names.map((name, index) => created(entry + index, name)))
        const result = await store.appendJournal({ ...run, stackUid, update, cliVersion: '3.260.0', bytes })
        if (result.kind === 'accepted') process.send?.({ stackUid, names })
      }
      await store.completeJournal({ ...run, stackUid, update })
    }
  })()
}

void (async () => {
  const stackUid = 'checkpoints'
  for (let update = 1; ; update++) {
    const names = [`${round}-${update}`]
    for (let resource = 1; resource < 10; resource++) {
      names.push(`${round}-${update}-${resource}`)
      const result = await store.writeVersion({ ...run, stackUid, kind: 'pulumi', update, bytes: stateOf(...names) })
      if (result.kind === 'accepted') process.send?.({ stackUid, names: [...names] })
    }
  }
})()
