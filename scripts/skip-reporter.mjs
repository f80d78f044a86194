// A reporter of node:test that writes one JSON line per skipped test: file, name, reason.
import { relative } from 'node:path'

export default async function* skipReporter(events) {
  for await (const { type, data } of events) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.skip === undefined || data.skip === false) continue
    const reason = data.skip === true || data.skip === '' ? 'no reason given' : data.skip
    yield `${JSON.stringify({ file: relative(process.cwd(), data.file ?? ''), name: data.name, reason })}\n`
  }
}
