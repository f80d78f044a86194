import { deepEqual, equal, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { parseAsJson } from './parse-yaml.ts'
import { isLongYaml, YamlParserThread } from './yaml-parser-thread.ts'

const ann = 'ann'
const lines = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: v${index}`).join('\n')

test('only long YAML that is not JSON goes to the thread', () => {
  const goes = (text: string, contentType: string) => isLongYaml(text, contentType) && parseAsJson(text) === undefined
  equal(goes(lines(10), 'application/yaml'), false)
  equal(goes(lines(2_000), 'application/yaml'), true)
  equal(goes(lines(2_000), 'application/apply-patch+yaml'), true)
  equal(goes(lines(2_000), 'application/json'), false)
  equal(goes(JSON.stringify({ a: 'x'.repeat(20_000) }), 'application/apply-patch+yaml'), false)
  equal(goes(`{a: ${'x'.repeat(20_000)}}`, 'application/apply-patch+yaml'), true)
})

test('concurrent texts are converted to JSON or rejected', async () => {
  const yaml = new YamlParserThread({ limitMs: 60_000 })
  const [map, list] = await Promise.all([
    yaml.toJson(lines(2_000), ann),
    yaml.toJson('- 1\n- yes\n', ann),
    rejects(yaml.toJson('a: [', ann)),
    rejects(yaml.toJson('a: 1\na: 2', ann), { code: 400, message: /duplicate key/ }),
  ])
  equal(JSON.parse(map).k1999, 'v1999')
  deepEqual(JSON.parse(list), [1, true])
  await rejects(yaml.toJson('- '.repeat(100_000), ann), { code: 400 })
  await rejects(yaml.toJson(`a: [${'1,'.repeat(101_000)}1]`, ann), { code: 413 })
  equal(await yaml.toJson('a: b', ann), '{"a":"b"}')
})

test('a text that takes too long is rejected, and the next one is parsed', async () => {
  const yaml = new YamlParserThread({ limitMs: 400 })
  const slow = yaml.toJson(lines(150_000), ann)
  const next = yaml.toJson('a: b', ann).catch(error => error.message)
  await rejects(slow, { code: 413, message: /takes more than 0\.4 s: send it as JSON/ })
  equal(typeof (await next), 'string')
})

test('texts beyond the limit of a user get 429, and another user takes a turn before them', async () => {
  const yaml = new YamlParserThread()
  const order: string[] = []
  const hostile = Array.from({ length: 12 }, () => yaml.toJson(lines(5_000), ann).then(() => order.push('ann')))
  const other = yaml.toJson('a: b', 'bob').then(() => order.push('bob'))
  const rejected = (await Promise.allSettled(hostile)).filter(result => result.status === 'rejected')
  await other
  deepEqual(
    rejected.map(({ reason }) => reason.code),
    [429, 429, 429],
  )
  ok(order.indexOf('bob') <= 2, order.join())
})

test('texts of all users beyond the limit get 429, those of the user with the most first', async () => {
  const yaml = new YamlParserThread()
  const all = await Promise.allSettled(Array.from({ length: 70 }, (_, index) => yaml.toJson('a: b', `user-${index % 30}`)))
  const rejected = all.filter(result => result.status === 'rejected')
  equal(rejected.length, 5)
  equal(rejected[0]?.reason.code, 429)
})
