/** Stacks of one npm project, one of which exceeds its memory limit: what every engine that installs packages must do. */
import { deepEqual, equal, match } from 'node:assert/strict'
import type { StackSpec } from '../../src/api/index.ts'
import { workerResource } from '../../src/api/index.ts'
import { eventually } from './eventually.ts'
import type { GitRepository } from './git-repository.ts'
import type { OarlockProcess } from './oarlock-process.ts'
import { workerProcessesOf } from './processes.ts'
import { isReady, StackFixture } from './stacks.ts'

export type OneProject = {
  up: OarlockProcess
  repository: GitRepository
  /** Source, resources and retry are replaced. */
  spec: StackSpec
  /** Of the Stack that exceeds its memory. */
  spendthrift: StackSpec['variables']
  /** Files of a commit that changes a package of the project. */
  change: Record<string, string>
  stackCount: number
  memory: { limit: string; raised: string }
  timeoutMs: number
}

/**
 * Creates the Stacks and waits until they are Ready, changes a package of the project and waits again. Asserts for both: one install, one Run of
 * each Stack that succeeds, and one more of the Stack that exceeds its memory limit, which fails; no lock and no worker afterwards.
 */
export async function checkOneProject({ up, repository, spec, spendthrift, change, stackCount, memory, timeoutMs }: OneProject) {
  const stacks = new StackFixture(up.client)
  const names = Array.from({ length: stackCount }, (_, index) => `app-${index}`)
  const [victim = '', ...others] = names
  const common = {
    source: { git: { url: repository.url, branch: 'main' }, interval: '1s' },
    resources: { memory: memory.limit, autoRaise: { memory: memory.raised } },
    retry: { initial: '1s' },
  }
  const untilApplied = async (commit: string) => {
    for (const name of names)
      await stacks.until(name, commit, each => isReady(each) && each.status?.applied?.revision.includes(commit) === true, timeoutMs)
    const runs = (await stacks.runs.listAll({ namespace: 'default' })).items.filter(run => run.spec.revision.includes(commit))
    return runs.sort((a, b) => a.spec.epoch - b.spec.epoch)
  }
  const seen = new Set<string>()
  const head = repository.commit({})
  for (const name of names) await stacks.create(name, { ...spec, ...common, ...(name === victim && { variables: spendthrift }) })
  for (const [index, commit] of [head, ''].entries()) {
    const runs = await untilApplied(commit || repository.commit(change))
    const ofVictim = runs.filter(run => run.spec.stackRef.name === victim)
    // The limit stays raised after the first round, because only the source has changed.
    const isFirst = index === 0
    deepEqual(
      ofVictim.map(({ status, spec }) => [status?.phase, status?.reason, spec.stack.resources?.memory]),
      [...(isFirst ? [['Failed', 'OutOfMemory', memory.limit]] : []), ['Succeeded', undefined, memory.raised]],
      JSON.stringify(ofVictim.map(({ status }) => status)),
    )
    if (isFirst) match(ofVictim[0]?.status?.message ?? '', new RegExp(`limit ${memory.limit}`))
    for (const name of others) {
      const own = runs.filter(run => run.spec.stackRef.name === name)
      deepEqual(
        own.map(({ status }) => status?.phase),
        ['Succeeded'],
        JSON.stringify(own.map(({ status }) => status)),
      )
    }
    const dependencies = runs.map(({ status }) => status?.dependencies)
    equal(new Set(dependencies.map(each => each?.digest)).size, 1, 'every Run has the same packages')
    equal(dependencies.filter(each => each?.source === 'Installed').length, 1, JSON.stringify(dependencies))
    seen.add(dependencies[0]?.digest ?? '')
    for (const name of names) {
      const lock = await up.client.request({ method: 'GET', path: `/state/default/${name}/lock` })
      deepEqual(await lock.json(), {}, `the state of ${name} is locked`)
    }
  }
  equal(seen.size, 2, 'a change of a package is a different digest')
  await eventually(async () => (await up.client.resource(workerResource).listAll()).items.length === 0, 'no Worker', 60_000)
  await eventually(async () => workerProcessesOf(up.dataDir).length === 0, 'no process of a worker', 60_000)
}
