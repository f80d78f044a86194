import { equal } from 'node:assert/strict'
import type { StackSpec } from '../../src/api/index.ts'
import { configMapResource } from '../../src/kubernetes/client/index.ts'
import { type OarlockProcess, startOarlock } from './oarlock-process.ts'
import { runOarlock } from './run-program.ts'

/** A Stack that is Ready after one Run. */
export const validSpec: StackSpec = {
  engine: 'command',
  source: { inline: { files: { a: 'b' } } },
  command: { apply: ['true'] },
}

const dataFlags = (dataDir: string) => ['--data', dataDir, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0']
/** Runs `oarlock up` on free ports until it ends. */
export const up = (dataDir: string, ...args: string[]) => runOarlock(['up', ...dataFlags(dataDir), ...args])

/** Starts, checks that the object of {@link storeMarker} still exists, and stops. */
export async function checkMarker(dataDir: string): Promise<void> {
  const oarlock = await startOarlock(dataDir)
  try {
    equal((await oarlock.client.resource(configMapResource).get('marker', { namespace: 'default' })).data?.what, 'stored')
  } finally {
    equal(await oarlock.stop(), 0)
  }
}

/** Creates an object whose existence {@link checkMarker} verifies. */
export async function storeMarker(oarlock: OarlockProcess): Promise<void> {
  await oarlock.client.resource(configMapResource).create({ metadata: { name: 'marker', namespace: 'default' }, data: { what: 'stored' } })
}
