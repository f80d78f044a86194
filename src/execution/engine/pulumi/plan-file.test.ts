import { deepEqual, throws } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { formatChange, isImplied, parsePlanFile, withRefreshed } from './plan-file.ts'

const urn = (type: string, name: string) => `urn:pulumi:dev::shop::${type}::${name}`
const root = urn('pulumi:pulumi:Stack', 'shop-dev')
const bucket = urn('aws:s3/bucket:Bucket', 'b')
const noDiff = { inputDiff: {}, outputDiff: {} }
const planOf = (resourcePlans: object) => JSON.stringify({ manifest: {}, resourcePlans })
const goal = (more: object = {}) => ({ ...noDiff, protect: false, ...more })

describe('a plan of the CLI', () => {
  for (const { name, plans, state = [], want } of [
    {
      name: 'counts what a user has declared, not the stack and its providers',
      plans: {
        [root]: { goal: goal(), steps: ['create'] },
        [urn('pulumi:providers:aws', 'default')]: { goal: goal(), steps: ['create'] },
        [bucket]: { goal: goal(), steps: ['create'] },
        [urn('my:Group', 'g')]: { goal: goal(), steps: ['update'] },
        [urn('my:Group$aws:s3/bucket:Bucket', 'old')]: { goal: null, steps: ['delete'] },
      },
      want: { counts: { add: 1, change: 1, destroy: 1 }, hasChanges: true },
    },
    {
      name: 'counts a replacement as added and destroyed, and an import as added',
      plans: {
        [bucket]: { goal: goal(), steps: ['create-replacement', 'replace', 'delete-replaced'] },
        [urn('a:b:C', 'i')]: { goal: goal(), steps: ['import'] },
      },
      want: { counts: { add: 2, change: 0, destroy: 1 }, hasChanges: true },
    },
    {
      name: 'has no changes if every step is "same" or a read',
      plans: { [root]: { goal: goal(), steps: ['same'] }, [bucket]: { goal: goal({ parent: root }), steps: ['same'] } },
      state: [{ urn: root }, { urn: bucket, parent: root, dependencies: [], protect: false }],
      want: { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: false },
    },
    {
      name: 'has changes if only an output of the stack changes',
      plans: { [root]: { goal: goal({ outputDiff: { updates: { url: 'x' } } }), steps: ['same'] } },
      state: [{ urn: root }],
      want: { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: true },
    },
    {
      name: 'has changes if an output of the stack is removed',
      plans: { [root]: { goal: goal({ outputDiff: { deletes: ['url'] } }), steps: ['same'] } },
      state: [{ urn: root }],
      want: { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: true },
    },
    {
      name: 'has changes if a resource is only protected, which the CLI reports as "same"',
      plans: { [bucket]: { goal: goal({ protect: true }), steps: ['same'] } },
      state: [{ urn: bucket }],
      want: { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: true },
    },
    {
      name: 'has changes if a resource gets another URN by an alias, which the CLI reports as "same"',
      plans: { [bucket]: { goal: goal(), steps: ['same'] } },
      state: [{ urn: urn('aws:s3/bucket:Bucket', 'before') }],
      want: { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: true },
    },
    {
      name: 'does not compare with a resource that is to be deleted',
      plans: { [bucket]: { goal: goal(), steps: ['same'] } },
      state: [{ urn: bucket, delete: true, protect: true }, { urn: bucket }],
      want: { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: false },
    },
  ]) {
    test(name, () => {
      const { counts, hasChanges } = parsePlanFile(planOf(plans), state)
      deepEqual({ counts, hasChanges }, want)
    })
  }

  test('is shown without secrets, with a text for what is not known', () => {
    const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext: 'AAAA' }
    const adds = { tags: { password: secret, list: [secret, 'a'] }, arn: '04da6b54-80e4-46f7-96ec-b56ff0331ba9' }
    const { changes } = parsePlanFile(planOf({ [bucket]: { goal: goal({ inputDiff: { adds } }), steps: ['create'] } }), [])
    const hidden = '(sensitive value)'
    deepEqual(changes[0]?.document, {
      inputs: { adds: { tags: { password: hidden, list: [hidden, 'a'] }, arn: '(known after apply)' } },
      outputs: {},
    })
  })

  test('has one line per change, without values', () => {
    const plans = {
      [bucket]: { goal: goal({ inputDiff: { adds: { a: 'value' } } }), steps: ['update'] },
      [urn('my:Group$aws:s3/bucket:Bucket', 'a::b')]: { goal: goal(), steps: ['create-replacement', 'replace', 'delete-replaced'] },
      [root]: { goal: goal({ outputDiff: { adds: { out: 'value' } } }), steps: ['same'] },
    }
    deepEqual(parsePlanFile(planOf(plans), [{ urn: root }]).changes.map(formatChange), [
      '~ aws:s3/bucket:Bucket b: update',
      '+- aws:s3/bucket:Bucket a::b: replace',
      '~ outputs of the stack: changed',
    ])
  })

  test('with targets has no changes of other resources, which it contains as the program wants them', () => {
    const other = urn('a:b:C', 'other')
    const plans = {
      [root]: { goal: goal(), steps: ['same'] },
      [bucket]: { goal: goal({ protect: true }), steps: ['same'] },
      [other]: { goal: goal({ protect: true }), steps: ['same'] },
      [urn('a:b:C', 'new')]: { goal: goal(), steps: ['same'] },
    }
    const changesOf = (targets: string[]) =>
      parsePlanFile(planOf(plans), [{ urn: root }, { urn: bucket }, { urn: other }], each => targets.includes(each)).changes
    deepEqual(
      changesOf([bucket]).map(({ urn }) => urn),
      [bucket],
    )
    deepEqual(changesOf([root]), [])
  })

  test('with targets has no new output that depends on other resources: it is still not known after the update', () => {
    const unknown = '04da6b54-80e4-46f7-96ec-b56ff0331ba9'
    const changesOf = (adds: Record<string, unknown>, isSelected?: () => boolean) =>
      parsePlanFile(planOf({ [root]: { goal: goal({ outputDiff: { adds } }), steps: ['same'] } }), [{ urn: root }], isSelected).changes
        .length
    deepEqual(
      changesOf({ b: unknown, c: { nested: unknown } }, () => false),
      0,
    )
    deepEqual(
      changesOf({ b: unknown, c: 'value' }, () => false),
      1,
    )
    deepEqual(changesOf({ b: unknown }), 1)
  })

  test('implies the stack and its providers, unless they change', () => {
    const change = (of: string, ...actions: string[]) => isImplied({ urn: of, type: '', actions, document: {} })
    deepEqual(
      [change(root, 'create'), change(urn('pulumi:providers:aws', 'default'), 'delete'), change(root, 'state'), change(bucket, 'create')],
      [true, true, false, false],
    )
  })

  test('is rejected if it is something else', () => {
    throws(() => parsePlanFile('{}', []), /no resourcePlans/)
  })
})

test('what a refresh has changed only in the state is a change of the plan, and not counted', () => {
  const change = (name: string, ...actions: string[]) => ({
    urn: `urn:pulumi:dev::shop::a:b:C::${name}`,
    type: 'a:b:C',
    actions,
    document: {},
  })
  const plan = { counts: { add: 0, change: 1, destroy: 0 }, hasChanges: true, changes: [change('b', 'update')] }
  const merged = withRefreshed(plan, [change('b', 'refresh'), change('a', 'refresh'), change('c', 'update')])
  deepEqual(merged, { ...plan, changes: [change('a', 'refresh'), change('b', 'update')] })
  deepEqual(merged.changes.map(formatChange), ['~ a:b:C a: only its state or outputs', '~ a:b:C b: update'])
  const unchanged = { counts: { add: 0, change: 0, destroy: 0 }, hasChanges: false, changes: [] }
  deepEqual(withRefreshed(unchanged, [change('a', 'create')]), unchanged)
  deepEqual(withRefreshed(unchanged, [change('a', 'refresh')]).hasChanges, true)
})
