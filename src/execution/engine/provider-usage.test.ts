import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { ProviderUsage, readDownloadSeconds, writeDownloadSeconds } from './provider-usage.ts'

const id = { key: 'registry.example/acme/widget/1.0.0/linux_amd64', checksum: 'h1:x' }

test('a Run that has got no provider reports none, also if it has looked for some', async () => {
  const usage = new ProviderUsage()
  await rejects(
    usage.measure(async () => {
      throw new Error('stopped')
    }),
    /stopped/,
  )
  equal(usage.total, undefined)
})

test('counts packages by source, and adds the durations of their downloads and the bytes of its own', () => {
  const usage = new ProviderUsage()
  usage.found('Cached', 2)
  usage.found('Cached', 0)
  usage.found('Waited', 3.0004)
  usage.downloaded({ bytes: 10, seconds: 1.5 })
  usage.downloaded({ bytes: 5 })
  deepEqual(usage.total, { cached: 2, waited: 1, downloaded: 2, downloadedBytes: 15, seconds: 0, downloadSeconds: 6.5 })
})

test('the duration of a download is found for the same package only, and is 0 if the record cannot be read', async () => {
  const records = new Map<string, string>()
  const store = {
    readRecord: async (name: string) => records.get(name),
    writeRecord: async (name: string, text: string) => void records.set(name, text),
  }
  equal(await readDownloadSeconds(store, id), 0)
  await writeDownloadSeconds(store, id, 1.23456)
  equal(await readDownloadSeconds(store, id), 1.235)
  equal(await readDownloadSeconds(store, { ...id, checksum: 'h1:y' }), 0)
  const [name = ''] = records.keys()
  for (const damaged of ['', '{"seconds":', '{"seconds":-1}', '{"seconds":"9"}', '{"seconds":1e999}', '[]']) {
    records.set(name, damaged)
    equal(await readDownloadSeconds(store, id), 0, damaged)
  }
  const failing = {
    readRecord: () => Promise.reject(new Error('EIO')),
    writeRecord: () => Promise.reject(new Error('ENOSPC')),
  }
  equal(await readDownloadSeconds(failing, id), 0)
  await writeDownloadSeconds(failing, id, 1)
})
