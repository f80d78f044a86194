// A reporter of node:test that writes one JSON line per skipped test and per failed test marked as todo: kind, file, name, reason.
import { relative } from 'node:path'

export default async function* skipReporter(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const isSet = value => value !== undefined && value !== false
    const kind = isSet(data.skip) ? 'skip' : type === 'test:fail' && isSet(data.todo) ? 'todo' : undefined
    if (!kind) continue
    const reason = data[kind] === true || data[kind] === '' ? 'no reason given' : data[kind]
    yield `${JSON.stringify({ kind, file: relative(process.cwd(), data.file ?? ''), name: data.name, reason })}\n`
  }
}
