/** `oarlock state …` of a Stack of engine pulumi, with a real all-in-one. No Run is executed: the entries of its journal are written while it is stopped. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { engineNames, type StackSpec } from '../src/api/index.ts'
import { readStateKey } from '../src/app/stores/state-key.ts'
import { batch, begin, created, namesIn, stateOf } from '../src/stores/state/pulumi-journal.testing.ts'
import { StateDatabase } from '../src/stores/state/state-database.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'

const base = makeDataDir()
const dataDir = join(base, 'data')
let oarlock: OarlockProcess | undefined
let stacks: StackFixture

after(async () => {
  await oarlock?.stop()
  removeDirectory(base)
})

async function start(): Promise<void> {
  oarlock = await startOarlock(dataDir)
  stacks = new StackFixture(oarlock.client)
}
const cli = async (...args: string[]) =>
  await runOarlock([...args, '-n', 'default'], { env: { KUBECONFIG: undefined, OARLOCK_DATA: dataDir } })
const pulled = async (...args: string[]) => namesIn(Buffer.from((await cli('state', 'pull', 'shop', ...args)).text))

/** What a Run of the Stack stores, and then its worker is killed. */
async function withoutServer(work: (append: (...entries: Parameters<typeof batch>) => unknown) => void): Promise<void> {
  const { metadata } = await stacks.get('shop')
  equal(await oarlock?.stop(), 0)
  const database = new StateDatabase({ directory: join(dataDir, 'state'), key: readStateKey(dataDir) })
  try {
    const stackUid = metadata.uid
    const epoch = database.fence(stackUid).maxSeenEpoch + 1
    const request = { stackUid, runName: `shop-${epoch}`, epoch, update: 1, cliVersion: '3.300.0' }
    work((...entries) => database.transaction(() => database.appendJournal({ ...request, bytes: batch(...entries) }, Date.now())))
  } finally {
    database.close()
  }
  await start()
}

const spec = {
  engine: 'pulumi',
  suspend: true,
  source: { inline: { files: { 'Pulumi.yaml': 'name: shop\nruntime: yaml\n' } } },
} as unknown as StackSpec
const hasEngine = (engineNames as readonly string[]).includes('pulumi')

if (hasEngine)
  test('the state of a Stack of engine pulumi is imported, read with its journal, replaced and recovered', async () => {
    await start()
    await stacks.create('shop', spec)
    await stacks.create('other', { ...spec, engine: 'command', command: { apply: ['true'] } })
    const file = (name: string, content: string | Buffer) => {
      writeFileSync(join(base, name), content)
      return join(base, name)
    }
    const exported = file('exported.json', stateOf('a', 'b'))
    const terraform = file(
      'terraform.tfstate',
      '{"version":4,"serial":1,"lineage":"l","terraform_version":"1.11.4","resources":[],"outputs":{}}',
    )

    const wrong = await cli('state', 'import', 'shop', '--from', terraform, '--yes')
    deepEqual([wrong.code, /it is a state of Terraform or OpenTofu/.test(wrong.text)], [4, true], wrong.text)
    const wrongPush = await cli('state', 'push', 'other', exported, '--yes')
    deepEqual([wrongPush.code, /is a state of Pulumi, and stack\/other has engine command/.test(wrongPush.text)], [4, true], wrongPush.text)
    const imported = await cli('state', 'import', 'shop', '--from', exported, '--yes')
    deepEqual([imported.code, /imported 2 resources .* stored as version 1/.test(imported.text)], [0, true], imported.text)
    deepEqual(await pulled(), ['a', 'b'])
    match((await cli('state', 'show', 'shop')).text, /Pulumi stack app\/dev[\s\S]*urn:pulumi:dev::app::a:b:C::a/)

    await withoutServer(append => append(begin(1, 'c'), created(2, 'c', { operationID: 1 }), begin(3, 'd')))
    deepEqual(await pulled(), ['c', 'a', 'b'])
    match((await cli('state', 'versions', 'shop')).text, /^2 +1 +shop-1 .* current journal of 3 entries$/m)
    match((await cli('state', 'show', 'shop')).text, /pending: creating urn:pulumi:dev::app::a:b:C::d/)
    match((await cli('state', 'list')).text, /^shop +pulumi +2 /m)

    equal((await cli('state', 'rollback', 'shop', '--to', '1', '--yes')).code, 0)
    deepEqual(
      [await pulled(), await pulled('--version', '2')],
      [
        ['a', 'b'],
        ['c', 'a', 'b'],
      ],
    )
    await withoutServer(append => append({ ...created(1, 'e'), kind: 42 }))
    const unreadable = await cli('state', 'pull', 'shop')
    deepEqual([unreadable.code, /cannot be read.*unknown entry kind 42/.test(unreadable.text)], [4, true], unreadable.text)
    match(
      (await stacks.until('shop', 'JournalUnreadable', stack => condition(stack, 'Stalled')?.reason === 'JournalUnreadable')).metadata.name,
      /shop/,
    )
    const pushed = await cli('state', 'push', 'shop', file('repaired.json', stateOf('a', 'b', 'f')), '--yes')
    equal(pushed.code, 0, pushed.text)
    deepEqual(await pulled(), ['a', 'b', 'f'])
    await stacks.until('shop', 'no error of the state', stack => condition(stack, 'Stalled')?.reason !== 'JournalUnreadable')
    match((await cli('state', 'versions', 'shop')).text, /journal, orphan: JournalUnreadable$/m)

    await withoutServer(append => append(created(1, 'g')))
    const target = join(base, 'pulled.json')
    equal((await cli('state', 'pull', 'shop', '--to', target)).code, 0)
    deepEqual(namesIn(readFileSync(target)), ['g', 'a', 'b', 'f'])
  })
